//~ words: Batch | not bound
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Feat;
}

fn one(x: Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
    (x * 2.0).eval()
}

fn called(x: Array1<f32>) {
    vmap(one, Batch)(x.at(Feat));
}

fn main() {
    let _ = called;
}
