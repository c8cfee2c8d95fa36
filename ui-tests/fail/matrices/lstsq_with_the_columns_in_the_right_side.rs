//~ words: M` is already bound | N | M
use typed_dims::prelude::*;

dims! {
    struct N;
    struct M;
}

fn solved(a: &Tensor<f64, (N, M)>, b: &Tensor<f64, (N, M)>) {
    println!("{}", a.lstsq(b, N, M));
}

fn main() {}
