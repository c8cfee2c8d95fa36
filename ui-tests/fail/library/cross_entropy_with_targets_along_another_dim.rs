//~ words: `Seq` | operand | (Batch,)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
    struct Class;
}

fn loss(x: &Tensor<f32, (Batch, Class)>, target: &Tensor<usize, (Seq,)>) {
    x.cross_entropy(Class, target);
}

fn main() {
    let _ = loss;
}
