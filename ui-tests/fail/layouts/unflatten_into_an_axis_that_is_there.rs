//~ words: dimension `Width` is already bound | (Pixel, Width)
//! A part cannot be an axis that the layout has already.

use typed_dims::prelude::*;

dims! {
    pub struct Pixel;
    pub struct Height;
    pub struct Width;
}

fn lines(image: Laid<f32, (Pixel, Width)>) {
    let _ = image.unflatten(Pixel, (Height, Width));
}

fn main() {}
