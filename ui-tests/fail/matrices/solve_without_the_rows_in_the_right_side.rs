//~ words: dimension `N` is not bound | M
use typed_dims::prelude::*;

dims! {
    struct N;
    struct M;
    struct K;
}

fn solved(a: &Tensor<f64, (N, M)>, b: &Tensor<f64, (K,)>) {
    println!("{}", a.solve(b, N, M));
}

fn main() {}
