//~ words: mismatched types | (Batch, Key) | (Batch, Seq)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
    struct Key;
}

fn model(_: &Tensor<f32, (Batch, Key)>) {}

fn run(x: Tensor<f32, (Batch, Seq)>) {
    model(&x);
}

fn main() {
    let _ = run;
}
