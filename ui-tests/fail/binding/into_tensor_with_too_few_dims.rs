//~ words: Rank2 | Rank1
use typed_dims::prelude::*;

dims! {
    struct Batch;
}

fn main() {
    let a = Array2::<f32>::zeros((2, 3));
    a.into_tensor(Batch);
}
