//~ words: expected `;` after the size
use typed_dims::prelude::*;

dims! {
    struct Heads = 12
    struct Batch;
}

fn main() {}
