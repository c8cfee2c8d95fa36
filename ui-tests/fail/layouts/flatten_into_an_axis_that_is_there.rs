//~ words: dimension `Channel` is already bound | (Height, Width, Channel)
//! Adjacent axes cannot be flattened into another existing axis.

use typed_dims::prelude::*;

dims! {
    pub struct Height;
    pub struct Width;
    pub struct Channel;
}

fn pixels(image: Laid<f32, (Height, Width, Channel)>) {
    let _ = image.flatten((Height, Width), Channel);
}

fn main() {}
