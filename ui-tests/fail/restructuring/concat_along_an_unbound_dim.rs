//~ words: `Batch` | not bound | (Seq,)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
}

fn joined(x: Tensor<f32, (Seq,)>, y: Tensor<f32, (Seq,)>) {
    concat(Batch, [x, y]);
}

fn main() {
    let _ = joined;
}
