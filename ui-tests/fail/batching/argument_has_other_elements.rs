//~ words: f32 | f64
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Feat;
}

#[batched]
fn total(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, ()> {
    x.sum(Feat)
}

fn called(x: Array2<f64>) {
    total(x.at((Batch, Feat)));
}

fn main() {
    let _ = called;
}
