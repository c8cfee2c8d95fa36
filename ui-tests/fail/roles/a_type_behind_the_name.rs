//~ words: `usize` is not a role
//! The type of the size, as in a constant, where the role belongs.

use typed_dims::prelude::*;

dims! {
    pub struct Heads: usize = 12;
}

fn main() {}
