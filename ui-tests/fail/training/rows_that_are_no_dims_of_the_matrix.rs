//~ words: `Other` | not bound
use typed_dims::init::orthogonal;
use typed_dims::prelude::*;

dims! {
    struct In;
    struct Out;
    struct Other;
}

fn mistake() -> Tensor<f32, (In, Out)> {
    orthogonal((In.of(3), Out.of(2)), (In, Other), 1)
}

fn main() {
    let _ = mistake;
}
