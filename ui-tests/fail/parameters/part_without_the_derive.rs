//~ words: `Vec<Norm>` is not a parameter | #[derive(Parameters)]
use typed_dims::prelude::*;

dims! { pub struct Width; }

struct Norm {
    weight: Tensor<f32, (Width,)>,
}

#[derive(Parameters)]
struct Layer {
    norms: Vec<Norm>,
    bias: Tensor<f32, (Width,)>,
}

fn main() {}
