//~ words: (Batch,)
//! The loss has one value for each example, until `.mean(Batch)` reduces it.
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Class;
}

fn loss(x: &Tensor<f32, (Batch, Class)>, target: &Tensor<usize, (Batch,)>) -> f32 {
    x.cross_entropy(Class, target).order(())
}

fn main() {
    let _ = loss;
}
