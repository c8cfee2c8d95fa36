//~ words: cannot be bound
//! An array has one axis for each dim of its layout.

use typed_dims::ndarray::Array3;
use typed_dims::prelude::*;

dims! {
    pub struct Height;
    pub struct Width;
}

fn flat(image: Array3<u8>) {
    let _ = image.into_laid((Height, Width));
}

fn main() {}
