//~ words: `Seq` | not a set of dims | (Batch,)
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn total(_: Tensor<f32, Seq>) {}

fn main() {}
