//~ words: `Batch` | not bound | (Seq,)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
}

fn first(x: Tensor<f32, (Seq,)>) {
    x.index(Batch, 0);
}

fn main() {
    let _ = first;
}
