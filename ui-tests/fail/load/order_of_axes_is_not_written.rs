//~ words: the order of the axes in the file is missing
use typed_dims::prelude::*;

dims! {
    pub struct Width;
    pub struct Inner;
}

type Matrix = (Width, Inner);

#[derive(Load)]
struct Layer {
    weight: Tensor<f32, Matrix>,
}

fn main() {}
