//~ words: matrices of `i32` have no eigenvalues here | .cast::<f64>()
use typed_dims::prelude::*;

dims! {
    struct N;
    struct M;
}

fn energies(a: &Tensor<i32, (N, M)>) {
    println!("{}", a.eig(N, M).0.size(M));
}

fn main() {}
