//~ words: 0 axes | 1 axis
use typed_dims::prelude::*;

dims! {
    struct Batch;
}

fn main() {
    dims!(i);
    let x = zeros::<f32, _>(Batch.of(2));
    x.at(i);
}
