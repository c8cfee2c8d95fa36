//~ words: cannot change its arguments
use typed_dims::prelude::*;

dims! {
    struct Feat;
}

#[batched]
fn called(x: &mut Tensor<f32, (Feat,)>) {
    *x *= 2.0;
}

fn main() {}
