//~ words: `Seq` | positional axes
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn total(_: Tensor<f32, (Seq,), Seq>) {}

fn main() {}
