//~ words: f32
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn doubled(x: Tensor<f32, (Seq,)>) {
    let _ = 2 * x;
}

fn main() {
    let _ = doubled;
}
