//~ words: `Norm` cannot be loaded from a file of weights
use typed_dims::prelude::*;

dims! { pub struct Width; }

struct Norm {
    weight: Tensor<f32, (Width,)>,
}

#[derive(Load)]
struct Layer {
    norm: Norm,
    bias: Tensor<f32, (Width,)>,
}

fn main() {}
