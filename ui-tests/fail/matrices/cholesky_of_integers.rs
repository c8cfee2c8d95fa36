//~ words: matrices of `i32` | cannot be factorized
use typed_dims::prelude::*;

dims! {
    struct N;
    struct M;
}

fn factor(a: &Tensor<i32, (N, M)>) -> Tensor<i32, (N, M)> {
    a.cholesky(N, M)
}

fn main() {
    let _ = factor;
}
