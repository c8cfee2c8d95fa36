//~ words: is not a tensor
//! What borrows memory to write it is read through its view.

use typed_dims::prelude::*;

dims! {
    pub struct Height;
    pub struct Width;
}

fn brightness(image: Laid<f32, (Height, Width), &mut [f32]>) -> f32 {
    image.sum((Height, Width)).order(())
}

fn main() {}
