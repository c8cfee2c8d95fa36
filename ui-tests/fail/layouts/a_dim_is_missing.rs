//~ words: `(Channel, Width)` lacks the dims `(Height,)`
use typed_dims::prelude::*;

dims! {
    struct Channel;
    struct Height;
    struct Width;
}

fn flat(image: Tensor<u8, (Height, Width, Channel)>) {
    let _ = image.laid((Channel, Width));
}

fn main() {}
