//~ words: cannot be loaded | alias hides the order of the axes | `#[load(axes = (A, B))]`
use typed_dims::prelude::*;

dims! {
    pub struct Width;
    pub struct Inner;
}

type Matrix = Tensor<f32, (Width, Inner)>;

#[derive(Load)]
struct Layer {
    weight: Matrix,
}

fn main() {}
