//~ words: `Seq` | queries | rename
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
    struct Feat;
}

fn heard(x: &Tensor<f32, (Batch, Seq, Feat)>) {
    attention(x, x, x, Feat, Seq, 0.125, true);
}

fn main() {
    let _ = heard;
}
