//~ words: expected `Laid<u8, (Height, Width), &[u8]>` | found `Laid<u8, (Width, Height), &[u8]>`
//! Borrowed memory has the order of its type's dims.

use typed_dims::prelude::*;

dims! {
    pub struct Height;
    pub struct Width;
}

fn rows(image: Laid<u8, (Height, Width), &[u8]>) -> usize {
    image.sizes()[0]
}

fn main() {
    let bytes = [0u8; 6];
    rows(bytes.as_slice().into_laid((Width.of(3), Height)));
}
