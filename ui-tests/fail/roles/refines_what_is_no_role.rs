//~ words: `usize` is not a role | roles are
//! What a role refines is a role.

use typed_dims::prelude::*;

roles! {
    pub struct Pixel: usize;
}

fn main() {}
