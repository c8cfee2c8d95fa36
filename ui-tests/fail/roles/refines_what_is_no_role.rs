//~ words: `usize` is not a role | roles are
//! A role can only refine a role.

use typed_dims::prelude::*;

roles! {
    pub struct Pixel: usize;
}

fn main() {}
