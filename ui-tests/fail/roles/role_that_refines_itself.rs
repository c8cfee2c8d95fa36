//~ words: the role `Pixel` refines itself
//! Roles of several calls refine one another in no circle.

use typed_dims::prelude::*;

roles! {
    pub struct Pixel: self::Pixel;
}

fn main() {}
