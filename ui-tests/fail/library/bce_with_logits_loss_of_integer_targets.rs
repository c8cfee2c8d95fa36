//~ words: tensor of `f32` | Named<usize, (Batch,)>
//! Labels are integers; this loss takes probabilities.
use typed_dims::prelude::*;

dims! {
    struct Batch;
}

fn loss(x: &Tensor<f32, (Batch,)>, target: &Tensor<usize, (Batch,)>) {
    let _ = x.bce_with_logits_loss(target);
}

fn main() {
    let _ = loss;
}
