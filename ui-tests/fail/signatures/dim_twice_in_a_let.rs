//~ words: dimension `N` is named twice in `(N, N)` | Other
use typed_dims::prelude::*;

dims! {
    struct N;
}

fn main() {
    let x = ones::<f32, _>(N.of(3));
    let outer: Tensor<f32, (N, N)> = (&x * &x).eval();
    println!("{outer}");
}
