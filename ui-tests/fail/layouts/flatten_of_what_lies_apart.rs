//~ words: `(Height, Channel)` are not neighbors | (Height, Width, Channel)
use typed_dims::prelude::*;

dims! {
    struct Channel;
    struct Height;
    struct Width;
    struct Both;
}

fn flattened(image: Laid<u8, (Height, Width, Channel)>) {
    let _ = image.flatten((Height, Channel), Both);
}

fn main() {}
