//~ words: `Batch` | Batch.of(2)
use typed_dims::prelude::*;

dims! {
    struct Batch;
}

fn main() {
    zeros::<f32, _>(Batch);
}
