//~ words: `Channel` | static size | x.slice_to(Channel
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Channel = 4;
}

fn some(x: &Tensor<f32, (Batch, Channel)>) {
    x.slice(Channel, ..2);
}

fn main() {
    let _ = some;
}
