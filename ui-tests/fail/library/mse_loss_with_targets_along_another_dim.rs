//~ words: `Out` | operand | (Batch, Feat)
//! With another dim for the targets, each prediction would be compared with all targets.
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Feat;
    struct Out;
}

fn loss(x: &Tensor<f32, (Batch, Feat)>, target: &Tensor<f32, (Batch, Out)>) {
    let _ = x.mse_loss(target);
}

fn main() {
    let _ = loss;
}
