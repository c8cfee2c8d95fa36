//~ words: exactly one dim of the constant, `(J,)` | (B, J)
//! A vector has no dim that could be the data dimension of the result.

use typed_dims::prelude::*;

dims! {
    pub struct B;
    pub struct J;
}

fn dot(x: &Stream<f32, (B, J), J>, weight: &Tensor<f32, (J,)>) {
    let _ = x.contract(weight, J);
}

fn main() {}
