//~ words: `Class` | operand | (Batch,)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Class;
}

fn loss(x: &Tensor<f32, (Batch, Class)>, target: &Tensor<usize, (Batch, Class)>) {
    x.nll_loss(Class, target);
}

fn main() {
    let _ = loss;
}
