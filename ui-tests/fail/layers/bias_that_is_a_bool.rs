//~ words: `bool` is not the bias of a layer | expected `NoBias`
use typed_dims::nn::norm::LayerNorm;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Width;
}

fn mistake(norm: &LayerNorm<(Width,), f32, bool>, x: &Tensor<f32, (Batch, Width)>) {
    norm.apply(x);
}

fn main() {
    let _ = mistake;
}
