//~ words: `Batch` | Batch.of(2)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Heads = 12;
}

fn main() {
    zeros::<f32, _>((Batch, Heads));
}
