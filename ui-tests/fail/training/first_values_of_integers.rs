//~ words: `i32` | float
use typed_dims::init::truncated_normal;
use typed_dims::prelude::*;

dims! {
    struct In;
    struct Out;
    struct Other;
}

fn mistake() -> Tensor<i32, (In, Out)> {
    truncated_normal((In.of(3), Out.of(2)), 0.02, 1)
}

fn main() {
    let _ = mistake;
}
