//~ words: `bool` does not say whether a layer has a bias | expected `NoBias`
use typed_dims::nn::LayerNorm;
use typed_dims::prelude::*;

dims! {
    struct Width;
}

struct Network {
    norm: LayerNorm<(Width,), f32, bool>,
}

fn main() {}
