//~ words: not square | N | M | Static<3> | Static<4>
use typed_dims::prelude::*;

dims! {
    struct N = 3;
    struct M = 4;
}

fn factor(a: &Tensor<f64, (N, M)>) -> Tensor<f64, (N, M)> {
    a.cholesky(N, M)
}

fn main() {}
