//~ words: the role `Pixel` refines itself
//! Refinements cannot form a cycle.

use typed_dims::prelude::*;

roles! {
    pub struct Pixel: Place;
    pub struct Place: Pixel;
}

fn main() {}
