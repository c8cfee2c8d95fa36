//~ words: a `TensorView` borrows its elements | make it a `Tensor`
use typed_dims::prelude::*;

dims! { pub struct Width; }

#[derive(Parameters)]
struct Layer<'w> {
    weight: TensorView<'w, f32, (Width,)>,
}

fn main() {}
