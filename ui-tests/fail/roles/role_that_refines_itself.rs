//~ words: the role `Pixel` refines itself
//! Refinements across several calls cannot form a cycle.

use typed_dims::prelude::*;

roles! {
    pub struct Pixel: self::Pixel;
}

fn main() {}
