//~ words: mismatched types | f64
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn model(_: Tensor<f64, (Seq,)>) {}

fn run(x: Tensor<f32, (Seq,)>) {
    model(x);
}

fn main() {
    let _ = run;
}
