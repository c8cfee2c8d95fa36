//~ words: `()` is not a dim
//! What is merged has a name.

use typed_dims::prelude::*;

dims! {
    pub struct Pixel;
    pub struct Height;
    pub struct Width;
}

fn pixels(image: Laid<f32, (Height, Width)>, nothing: ()) {
    let _ = image.merge((Height, Width), nothing);
}

fn main() {}
