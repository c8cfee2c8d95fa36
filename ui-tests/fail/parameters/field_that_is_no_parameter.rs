//~ words: `usize` is not a parameter | #[parameters(constant)]
use typed_dims::prelude::*;

dims! { pub struct Width; }

#[derive(Parameters)]
struct Layer {
    weight: Tensor<f32, (Width,)>,
    heads: usize,
}

fn main() {}
