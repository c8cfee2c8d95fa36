//~ words: `Channel` | static size | rename
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Channel = 4;
}

fn changes(x: &Tensor<f32, (Batch, Channel)>) {
    x.diff(Channel);
}

fn main() {
    let _ = changes;
}
