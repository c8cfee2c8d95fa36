//~ words: mismatched types | Evaluated
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn doubled(x: Tensor<f32, (Seq,)>) -> Tensor<f32, (Seq,)> {
    x * 2.0
}

fn main() {
    let _ = doubled;
}
