//~ words: the role `Pixel` refines itself
//! A cycle that `roles!` cannot see, such as one across several calls, is also an error.

use typed_dims::prelude::*;

roles! {
    pub struct Pixel: self::Pixel;
}

fn main() {}
