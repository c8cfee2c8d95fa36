//~ words: either `constant` or `state` | remove one
use typed_dims::prelude::*;

dims! { pub struct Width; }

#[derive(Parameters)]
struct Norm {
    weight: Tensor<f32, (Width,)>,
    #[parameters(constant, state)]
    mean: Tensor<f32, (Width,)>,
}

fn main() {}
