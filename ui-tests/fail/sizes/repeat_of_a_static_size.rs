//~ words: `Channel` | static size | rename
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Channel = 4;
}

fn twice(x: &Tensor<f32, (Batch, Channel)>) {
    x.repeat(Channel, 2);
}

fn main() {
    let _ = twice;
}
