//~ words: expected `;`
use typed_dims::prelude::*;

dims! {
    struct Batch { size: usize }
}

fn main() {}
