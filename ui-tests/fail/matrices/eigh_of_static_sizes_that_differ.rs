//~ words: not square | N | M | Static<3> | Static<4>
use typed_dims::prelude::*;

dims! {
    struct N = 3;
    struct M = 4;
}

fn energies(a: &Tensor<f64, (N, M)>) -> Tensor<f64, (M,)> {
    a.eigh(N, M).0
}

fn main() {}
