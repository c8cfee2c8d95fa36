//~ words: declared outside functions | `struct Batch;`
use typed_dims::prelude::*;

dims! {
    Batch;
    Seq = 3;
}

fn main() {}
