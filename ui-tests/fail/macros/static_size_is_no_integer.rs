//~ words: usize
use typed_dims::prelude::*;

dims! {
    struct Heads = "12";
}

fn main() {}
