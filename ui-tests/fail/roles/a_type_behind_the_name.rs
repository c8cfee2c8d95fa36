//~ words: `usize` is not a role
//! A size as it would stand behind a constant.

use typed_dims::prelude::*;

dims! {
    pub struct Heads: usize = 12;
}

fn main() {}
