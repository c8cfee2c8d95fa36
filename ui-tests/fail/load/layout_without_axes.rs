//~ words: this field's type does not show them | `axes = (..)`
use typed_dims::prelude::*;

dims! { struct Width; }

#[derive(Load)]
struct Model {
    #[load(layout = (Width,))]
    part: Part,
}

#[derive(Load)]
struct Part {
    bias: Tensor<f32, (Width,)>,
}

fn main() {}
