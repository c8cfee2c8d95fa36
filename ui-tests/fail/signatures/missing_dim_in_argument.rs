//~ words: mismatched types | (Batch, Seq) | (Seq,)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
}

fn model(_: Tensor<f32, (Batch, Seq)>) {}

fn run(x: Tensor<f32, (Seq,)>) {
    model(x);
}

fn main() {
    let _ = run;
}
