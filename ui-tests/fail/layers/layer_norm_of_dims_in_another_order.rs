//~ words: `(Batch, Width)` | order
use typed_dims::nn::norm::LayerNorm;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Width;
}

fn mistake(norm: &LayerNorm<(Width, Batch)>, x: &Tensor<f32, (Batch, Width)>) {
    norm.apply(x);
}

fn main() {
    let _ = mistake;
}
