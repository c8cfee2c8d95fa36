//~ words: SIZE | Batch
use typed_dims::prelude::*;

dims! {
    struct Batch;
}

fn main() {
    let _ = Batch::SIZE;
}
