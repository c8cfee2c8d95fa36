//~ words: expected `&Laid<u8, (Height, Width, Channel)>` | found `&Laid<u8, (Channel, Height, Width)>`
use typed_dims::prelude::*;

dims! {
    struct Channel;
    struct Height;
    struct Width;
}

fn encode(image: &Laid<u8, (Height, Width, Channel)>) -> usize {
    image.as_slice().len()
}

fn encoded(image: Tensor<u8, (Height, Width, Channel)>) -> usize {
    encode(&image.laid((Channel, Height, Width)))
}

fn main() {}
