//~ words: no dims are named here
//! An axis cannot be split into nothing.

use typed_dims::prelude::*;

dims! {
    pub struct Pixel;
    pub struct Height;
    pub struct Width;
}

fn lines(image: Laid<f32, (Pixel, Width)>, nothing: ()) {
    let _ = image.unflatten(Pixel, nothing);
}

fn main() {}
