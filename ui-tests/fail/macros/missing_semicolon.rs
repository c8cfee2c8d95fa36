//~ words: expected `;`
use typed_dims::prelude::*;

dims! {
    struct Batch
    struct Seq;
}

fn main() {}
