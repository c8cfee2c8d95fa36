//~ words: `Channel` | static size | rename
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Channel = 4;
}

fn pooled(x: &Tensor<f32, (Batch, Channel)>) {
    x.adaptive_avg_pool(Channel, 1);
}

fn main() {
    let _ = pooled;
}
