//~ words: f32 | integer
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn doubled(x: Tensor<f32, (Seq,)>) {
    let _ = x * 2;
}

fn main() {
    let _ = doubled;
}
