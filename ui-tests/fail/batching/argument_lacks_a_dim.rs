//~ words: Feat | not bound
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
    struct Feat;
}

#[batched]
fn total(x: &Tensor<f32, (Seq, Feat)>) -> Tensor<f32, ()> {
    x.sum((Seq, Feat))
}

fn called(x: Array2<f32>) {
    total(x.at((Batch, Seq)));
}

fn main() {
    let _ = called;
}
