//~ words: `(Width, Batch)` | order
use typed_dims::nn::LayerNorm;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Width;
}

struct Network {
    norm: LayerNorm<(Width, Batch)>,
}

fn main() {
    let _ = |network: Network| network.norm;
}
