//~ words: dimension `N` is named twice in `(N, N)` | Other
use typed_dims::prelude::*;

dims! {
    struct N;
}

fn main() {
    let solve = |(a, b): (&Tensor<f32, (N, N)>, &Tensor<f32, (N,)>)| (a * b).sum(N).order(());
    let x = ones::<f32, _>(N.of(3));
    println!("{}", solve((&x, &x)));
}
