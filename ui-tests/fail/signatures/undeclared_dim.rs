//~ words: cannot find type `Sequence`
use typed_dims::prelude::*;

dims! {
    struct Batch;
}

fn model(_: Tensor<f32, (Batch, Sequence)>) {}

fn main() {
    let _ = model;
}
