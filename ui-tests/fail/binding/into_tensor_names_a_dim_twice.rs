//~ words: Batch | twice
use typed_dims::prelude::*;

dims! {
    struct Batch;
}

fn main() {
    let a = Array2::<f32>::zeros((2, 2));
    a.into_tensor((Batch, Batch));
}
