//~ words: dimension `Height` is named twice | (Height, Height)
//! Each part needs a different dim.

use typed_dims::prelude::*;

dims! {
    pub struct Pixel;
    pub struct Height;
    pub struct Width;
}

fn lines(image: Laid<f32, (Pixel, Width)>) {
    let _ = image.unflatten(Pixel, (Height, Height));
}

fn main() {}
