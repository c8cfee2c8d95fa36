//~ words: f32 | &
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn both(x: Tensor<f32, (Seq,)>, y: Tensor<f32, (Seq,)>) {
    let _ = x & y;
}

fn main() {
    let _ = both;
}
