//~ words: `Batch` | already bound
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Channel = 4;
}

fn some(x: &Tensor<f32, (Batch, Channel)>) {
    x.slice_to(Channel, ..2, Batch);
}

fn main() {
    let _ = some;
}
