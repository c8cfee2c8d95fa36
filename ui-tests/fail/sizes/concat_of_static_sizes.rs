//~ words: `Channel` | static size | rename
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Channel = 4;
}

fn both(x: &Tensor<f32, (Batch, Channel)>) {
    concat(Channel, [x, x]);
}

fn main() {
    let _ = both;
}
