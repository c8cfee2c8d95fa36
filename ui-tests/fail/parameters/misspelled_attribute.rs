//~ words: expected `constant` or `state`
use typed_dims::prelude::*;

dims! { pub struct Width; }

#[derive(Parameters)]
struct Layer {
    weight: Tensor<f32, (Width,)>,
    #[parameters(constat)]
    heads: usize,
}

fn main() {}
