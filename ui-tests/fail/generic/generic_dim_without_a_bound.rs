//~ words: (I, Hidden) | AnyDim
use typed_dims::prelude::*;

dims! { struct Hidden; }

struct Linear<I> {
    weight: Tensor<f32, (I, Hidden)>,
}

fn main() {}
