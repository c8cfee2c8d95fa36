//~ words: `(Source, Key)` | mask
use typed_dims::nn::MultiHeadAttention;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Token;
    struct Source;
    struct Key;
    struct Width;
    struct Head;
    struct Feat;
}

type Attention = MultiHeadAttention<(Width,), (Head, Feat), (Head, Feat), Feat>;


fn mistake(attention: &Attention, x: &Tensor<f32, (Batch, Token, Width)>) {
    attention.among(x, Token, Key, Key.le(Source));
}

fn main() {
    let _ = mistake;
}
