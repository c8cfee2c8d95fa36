//~ words: matrices of `i32` | cannot be computed | cast
use typed_dims::prelude::*;

dims! {
    struct N;
    struct M;
}

fn spectrum(a: &Tensor<i32, (N, M)>) {
    let (values, _) = a.eig(N, M);
    println!("{values}");
}

fn main() {
    let _ = spectrum;
}
