//~ words: <
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn less(x: Tensor<f32, (Seq,)>, y: Tensor<f32, (Seq,)>) {
    let _ = x < y;
}

fn main() {
    let _ = less;
}
