//~ words: cannot be changed | `Vec<T>` or `&mut [T]`
//! A layout over `&[T]` is for reading.

use typed_dims::prelude::*;

dims! {
    pub struct Height;
    pub struct Width;
}

fn clear(mut image: Laid<u8, (Height, Width), &[u8]>) {
    image.assign(0);
}

fn main() {}
