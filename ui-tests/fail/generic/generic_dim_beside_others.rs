//~ words: (I, Gate, Hidden) | Before<Next>
use typed_dims::prelude::*;

dims! { struct Gate; struct Hidden; }

struct Lstm<I: AnyDim> {
    weight: Tensor<f32, (I, Gate, Hidden)>,
}

fn main() {}
