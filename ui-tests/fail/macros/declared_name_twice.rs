//~ words: `Batch` | twice
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Batch;
}

fn main() {}
