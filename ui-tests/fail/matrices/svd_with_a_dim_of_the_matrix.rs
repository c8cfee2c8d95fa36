//~ words: `M` | already bound | another name
use typed_dims::prelude::*;

dims! {
    struct N;
    struct M;
}

fn values(a: &Tensor<f32, (N, M)>) {
    let (_, s, _) = a.svd(N, M, M);
    println!("{s}");
}

fn main() {
    let _ = values;
}
