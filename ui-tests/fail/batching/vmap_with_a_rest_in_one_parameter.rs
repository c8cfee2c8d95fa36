//~ words: `Rest`, or none
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Feat;
}

fn both<B: Dims>(x: Tensor<f32, (Feat, Rest<B>)>, y: Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat, Rest<B>)> {
    (x + y).eval()
}

fn called(x: Array2<f32>) {
    let x = x.at((Batch, Feat));
    vmap(both, Batch)((x, x));
}

fn main() {
    let _ = called;
}
