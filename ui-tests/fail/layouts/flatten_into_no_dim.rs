//~ words: `()` is not a dim
//! The flattened axis needs a dim.

use typed_dims::prelude::*;

dims! {
    pub struct Pixel;
    pub struct Height;
    pub struct Width;
}

fn pixels(image: Laid<f32, (Height, Width)>, nothing: ()) {
    let _ = image.flatten((Height, Width), nothing);
}

fn main() {}
