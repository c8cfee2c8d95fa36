//~ words: dimension `I` is not bound | (J, K)
//! Only the weights have the contracted dim.

use typed_dims::prelude::*;

dims! {
    pub struct I;
    pub struct J;
    pub struct K;
}

fn product(x: &Stream<f32, (J, K), J>, weight: &Tensor<f32, (I, J)>) {
    let _ = x.contract(weight, I);
}

fn main() {}
