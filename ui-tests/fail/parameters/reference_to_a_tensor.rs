//~ words: a reference borrows its elements | make it a `Tensor`
use typed_dims::prelude::*;

dims! { pub struct Width; }

#[derive(Parameters)]
struct Layer<'w> {
    weight: &'w Tensor<f32, (Width,)>,
}

fn main() {}
