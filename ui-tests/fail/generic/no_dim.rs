//~ words: f32 | AnyDim
use typed_dims::prelude::*;

struct Scale<D: AnyDim> {
    gain: Tensor<f32, (D,)>,
}

fn scaled(_: &Scale<f32>) {}

fn main() {}
