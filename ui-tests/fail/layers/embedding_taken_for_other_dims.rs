//~ words: (Batch, Width) | (Batch, Word)
use typed_dims::nn::Embedding;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Word;
    struct Width;
}

fn mistake(words: &Embedding<Word, (Width,)>, ids: &Tensor<u32, (Batch,)>) -> Tensor<f32, (Batch, Word)> {
    words.apply(ids)
}

fn main() {
    let _ = mistake;
}
