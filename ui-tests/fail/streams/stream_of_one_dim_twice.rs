//~ words: dimension `A` is named twice | (A, A)
//! A dim can only be one axis.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
}

fn flow(x: Tensor<f32, (A, B)>) {
    let _ = x.stream((A, A), A);
}

fn main() {}
