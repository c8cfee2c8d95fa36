//~ words: dimension `N` is named twice in `(N, N)` | Other
use typed_dims::prelude::*;

dims! {
    struct N;
}

fn trace(x: &Tensor<f32, (N, N)>) -> f32 {
    x.sum(N).order(())
}

fn main() {}
