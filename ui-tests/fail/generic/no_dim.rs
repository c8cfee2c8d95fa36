//~ words: f32 | AnyDim
use typed_dims::prelude::*;

struct Scale<D: AnyDim> {
    gain: Tensor<f32, (D,)>,
}

fn main() {
    let _: Option<Scale<f32>> = None;
}
