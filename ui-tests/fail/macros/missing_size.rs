//~ words: expected
use typed_dims::prelude::*;

dims! {
    struct Heads = ;
}

fn main() {}
