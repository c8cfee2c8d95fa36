//~ words: f32 | f64 | one example
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Feat;
}

fn one(x: Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
    (x * 2.0).eval()
}

fn called(x: Array2<f64>) {
    vmap(one, Batch)(x.at((Batch, Feat)));
}

fn main() {
    let _ = called;
}
