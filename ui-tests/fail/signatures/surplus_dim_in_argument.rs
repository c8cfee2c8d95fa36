//~ words: mismatched types | (Seq,) | (Batch, Seq)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
}

fn model(_: &Tensor<f32, (Seq,)>) {}

fn run(x: Tensor<f32, (Batch, Seq)>) {
    model(&x);
}

fn main() {
    let _ = run;
}
