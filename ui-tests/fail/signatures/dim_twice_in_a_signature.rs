//~ words: dimension `N` is named twice in `(N, N)` | Other
use typed_dims::prelude::*;

dims! {
    struct M;
    struct N;
}

fn gram(x: &Tensor<f32, (M, N)>) -> Tensor<f32, (N, N)> {
    (x * x).sum(M)
}

fn main() {}
