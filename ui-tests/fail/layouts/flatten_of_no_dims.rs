//~ words: no dims are named here
//! Flattening needs at least one axis.

use typed_dims::prelude::*;

dims! {
    pub struct Pixel;
    pub struct Height;
    pub struct Width;
}

fn pixels(image: Laid<f32, (Height, Width)>) {
    let _ = image.flatten((), Pixel);
}

fn main() {}
