//~ words: `f32`
use typed_dims::nn::Embedding;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Word;
    struct Width;
}

fn mistake(words: &Embedding<Word, (Width,)>, ids: &Tensor<f32, (Batch,)>) -> Tensor<f32, (Batch, Width)> {
    words.apply(ids)
}

fn main() {
    let _ = mistake;
}
