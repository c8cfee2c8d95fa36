//~ words: `Out` | no size
use typed_dims::init::lecun_uniform;
use typed_dims::prelude::*;

dims! {
    struct In;
    struct Out;
    struct Other;
}

fn mistake() -> Tensor<f32, (In, Out)> {
    lecun_uniform((In.of(3), Out), In, 1)
}

fn main() {
    let _ = mistake;
}
