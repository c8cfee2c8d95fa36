//~ words: not square | N | M | Static<3> | Static<4>
use typed_dims::prelude::*;

dims! {
    struct N = 3;
    struct M = 4;
}

fn solved(a: &Tensor<f64, (N, M)>, b: &Tensor<f64, (N,)>) -> Tensor<f64, (M,)> {
    a.solve(b, N, M)
}

fn main() {}
