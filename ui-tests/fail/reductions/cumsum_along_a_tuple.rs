//~ words: `(Batch, Seq)` is not a dim | for each
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
}

fn running(x: Tensor<f32, (Batch, Seq)>) {
    x.cumsum((Batch, Seq));
}

fn main() {
    let _ = running;
}
