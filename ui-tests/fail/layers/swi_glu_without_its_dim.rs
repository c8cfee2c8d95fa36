//~ words: `Width` | not bound | (Batch, Token)
use typed_dims::nn::SwiGlu;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Token;
    struct Width;
    struct Inner;
}

fn mistake(network: &SwiGlu<(Width,), (Inner,)>, x: &Tensor<f32, (Batch, Token)>) {
    network.apply(x);
}

fn main() {
    let _ = mistake;
}
