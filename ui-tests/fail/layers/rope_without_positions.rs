//~ words: `Token` | not bound | (Batch, Feat)
use typed_dims::nn::Rope;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Token;
    struct Feat;
}

fn mistake(rope: &Rope<Token, Feat>, x: &Tensor<f32, (Batch, Feat)>) {
    rope.apply(x, 0);
}

fn main() {
    let _ = mistake;
}
