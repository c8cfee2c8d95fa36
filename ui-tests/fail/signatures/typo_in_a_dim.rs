//~ words: cannot find type `Bacth` | Batch
use typed_dims::prelude::*;

dims! {
    struct Batch;
}

fn model(_: Tensor<f32, (Bacth,)>) {}

fn main() {
    let _ = model;
}
