//~ words: cannot be combined with a tensor of `f64` | Stream<f32, (A, B), A>
//! A constant must have the element type of the stream.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
}

fn biased(x: &Stream<f32, (A, B), A>, bias: &Tensor<f64, (A,)>) {
    let _ = bias + x;
}

fn main() {}
