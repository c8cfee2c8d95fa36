//~ words: `Channel` | static size | rename
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Channel = 4;
}

fn padded(x: &Tensor<f32, (Batch, Channel)>) {
    x.pad((Batch, Channel), 1, 1, Pad::Constant(0.0));
}

fn main() {
    let _ = padded;
}
