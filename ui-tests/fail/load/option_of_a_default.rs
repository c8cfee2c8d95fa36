//~ words: `default` is not read from the file | `name` has no effect
use typed_dims::prelude::*;

dims! { struct Width; }

#[derive(Load)]
struct Model {
    weight: Tensor<f32, (Width,)>,
    #[load(default = 3, name = "the_depth")]
    depth: usize,
}

fn main() {}
