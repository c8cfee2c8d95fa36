//~ words: dimension `Width` is already bound | (Pixel, Width)
//! A part cannot be an existing axis of the layout.

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
