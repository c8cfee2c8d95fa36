//~ words: `Channel` | static size | rename
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Channel = 4;
    struct Lag;
}

fn windows(x: &Tensor<f32, (Batch, Channel)>) {
    x.unfold(Channel, Lag.of(2), 1, 1);
}

fn main() {
    let _ = windows;
}
