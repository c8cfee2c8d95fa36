//~ words: dimension `N` is named twice in `(N, N)` | Other
use typed_dims::prelude::*;

dims! {
    struct N;
}

fn main() {
    let x = from_vec((N.of(2), N.of(2)), vec![1.0, 2.0, 3.0, 4.0]);
    println!("{x}");
}
