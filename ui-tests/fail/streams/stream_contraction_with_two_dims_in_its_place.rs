//~ words: exactly one dim of the constant, `(H, I, J)`
//! Which of two dims would the result flow along?

use typed_dims::prelude::*;

dims! {
    pub struct H;
    pub struct I;
    pub struct J;
    pub struct K;
}

fn product(x: &Stream<f32, (J, K), J>, weight: &Tensor<f32, (H, I, J)>) {
    let _ = x.contract(weight, J);
}

fn main() {}
