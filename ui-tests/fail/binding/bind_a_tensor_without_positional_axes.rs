//~ words: Rank0 | Rank1 | one binder for each axis
use typed_dims::prelude::*;

dims! {
    struct Batch;
}

fn main() {
    dims!(_h, i);
    let x = zeros::<f32, _>(Batch.of(2));
    x.at(i);
}
