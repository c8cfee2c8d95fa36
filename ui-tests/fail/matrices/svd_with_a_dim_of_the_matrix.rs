//~ words: M` is already bound | N | M
use typed_dims::prelude::*;

dims! {
    struct N;
    struct M;
}

fn sizes(a: &Tensor<f64, (N, M)>) {
    println!("{}", a.svd(N, M, M).1);
}

fn main() {}
