//~ words: the role `Pixel` refines itself
//! Roles refine one another in no circle.

use typed_dims::prelude::*;

roles! {
    pub struct Pixel: Place;
    pub struct Place: Pixel;
}

fn main() {}
