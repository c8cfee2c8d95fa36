//~ words: dimension `N` is named twice in `(N, N)` | Other
use typed_dims::prelude::*;

dims! {
    struct N;
}

fn main() {
    let identity = eye::<f32, _, _>(N.of(2), N.of(2));
    println!("{identity}");
}
