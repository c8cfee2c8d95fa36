//~ words: `J` | not bound | (I, K)
//! The weights lack the contracted dim.

use typed_dims::prelude::*;

dims! {
    pub struct I;
    pub struct J;
    pub struct K;
    pub struct L;
}

fn product(x: &Stream<f32, (J, L), J>, weight: &Tensor<f32, (I, K)>) {
    let _ = x.contract(weight, J);
}

fn main() {}
