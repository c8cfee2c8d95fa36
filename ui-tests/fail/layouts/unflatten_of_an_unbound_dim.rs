//~ words: `Batch` is not bound | (Height, Width)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Height;
    struct Width;
    struct Half;
    struct Rest2 = 2;
}

fn unflattened(image: Laid<u8, (Height, Width)>) {
    let _ = image.unflatten(Batch, (Half, Rest2));
}

fn main() {}
