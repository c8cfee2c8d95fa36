//~ words: `Channel` | static size | rename
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Channel = 4;
}

fn parts(x: &Tensor<f32, (Batch, Channel)>) {
    x.split(Channel, &[1, 3]);
}

fn main() {
    let _ = parts;
}
