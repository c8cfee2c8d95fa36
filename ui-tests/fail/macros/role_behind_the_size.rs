//~ words: write the role before the size
use typed_dims::prelude::*;

dims! {
    struct Channel = 64: DataChannel;
}

fn main() {}
