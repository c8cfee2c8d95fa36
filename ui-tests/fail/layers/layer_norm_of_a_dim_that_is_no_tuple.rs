//~ words: `Width` | tuple | `(Width,)`
use typed_dims::nn::LayerNorm;
use typed_dims::prelude::*;

dims! {
    struct Width;
}

struct Network {
    norm: LayerNorm<Width>,
}

fn main() {}
