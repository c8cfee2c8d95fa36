//~ words: dimension `N` is named twice in `(N, N)` | Other
use typed_dims::prelude::*;

dims! {
    struct N;
}

struct Kalman {
    covariance: Tensor<f32, (N, N)>,
}

fn main() {}
