//~ words: `Other` | not bound | (In, Out)
use typed_dims::init::he_normal;
use typed_dims::prelude::*;

dims! {
    struct In;
    struct Out;
    struct Other;
}

fn mistake() -> Tensor<f32, (In, Out)> {
    he_normal((In.of(3), Out.of(2)), Other, 1)
}

fn main() {
    let _ = mistake;
}
