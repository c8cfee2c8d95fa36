//~ words: `usize` | not a dimension
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn total(_: Tensor<f32, (Seq, usize)>) {}

fn main() {
    let _ = total;
}
