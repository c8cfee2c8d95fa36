//~ words: use a `Tensor` for another layout
use typed_dims::prelude::*;

dims! {
    pub struct Width;
    pub struct Inner;
}

#[derive(Load)]
struct Layer<'w> {
    #[load(layout = (Width, Inner))]
    weight: TensorView<'w, f32, (Inner, Width)>,
}

fn main() {}
