//~ words: `Batch` | not bound | (Seq,)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
}

fn first(x: Tensor<f32, (Seq,)>) {
    x.size(Batch);
}

fn main() {
    let _ = first;
}
