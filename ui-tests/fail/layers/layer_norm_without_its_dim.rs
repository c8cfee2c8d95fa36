//~ words: `Width` | not bound | (Batch, Token)
use typed_dims::nn::LayerNorm;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Token;
    struct Width;
}

fn mistake(norm: &LayerNorm<(Width,)>, x: &Tensor<f32, (Batch, Token)>) {
    norm.apply(x);
}

fn main() {
    let _ = mistake;
}
