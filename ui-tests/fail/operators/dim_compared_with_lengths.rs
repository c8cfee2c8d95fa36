//~ words: usize | isize | cast
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
}

fn padding(x: Tensor<f32, (Batch, Seq)>, lengths: Tensor<usize, (Batch,)>) {
    let _ = select(Seq.lt(&lengths), &x, 0.0);
}

fn main() {
    let _ = padding;
}
