//~ words: `Key` | not bound | (Batch, Seq, Feat)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
    struct Key;
    struct Feat;
}

fn total(x: Tensor<f32, (Seq, Feat)>, y: &Tensor<f32, (Batch, Seq)>) {
    (x * y).exp().sum((Seq, Key));
}

fn main() {
    let _ = total;
}
