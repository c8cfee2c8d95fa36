//~ words: dimension `D` is named twice in `(D, D)`
use typed_dims::prelude::*;

struct Covariance<D: AnyDim> {
    matrix: Tensor<f32, (D, D)>,
}

fn main() {}
