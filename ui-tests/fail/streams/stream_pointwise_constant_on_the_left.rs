//~ words: cannot be combined with a tensor of `f32`
//! A constant stands on the right of a stream.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
}

fn biased(x: &Stream<f32, (A, B), A>, bias: &Tensor<f32, (A,)>) {
    let _ = bias + x;
}

fn main() {}
