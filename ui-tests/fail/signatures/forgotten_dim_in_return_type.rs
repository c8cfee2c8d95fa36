//~ words: mismatched types | (Batch, Seq, Heads) | (Batch, Seq, Key, Heads)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
    struct Key;
    struct Heads = 12;
    struct Feat = 64;
}

fn scores(
    q: &Tensor<f32, (Batch, Seq, Heads, Feat)>,
    k: &Tensor<f32, (Batch, Key, Heads, Feat)>,
) -> Tensor<f32, (Batch, Seq, Heads)> {
    (q * k).sum(Feat)
}

fn main() {
    let _ = scores;
}
