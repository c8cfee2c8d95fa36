//~ words: no dims are named here
//! An axis does not vanish.

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
