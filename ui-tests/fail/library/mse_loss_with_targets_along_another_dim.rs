//~ words: `Out` | operand | (Batch, Feat)
//! Where the targets' dim has another name, each prediction would be compared with all targets.
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
