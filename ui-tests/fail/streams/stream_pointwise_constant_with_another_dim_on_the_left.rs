//~ words: does not match a stream of `f32` | `(A, B)`
//! A constant has no dims besides the axes of the stream, on whichever side it stands.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn biased(x: &Stream<f32, (A, B), A>, bias: &Tensor<f32, (C,)>) {
    let _ = bias + x;
}

fn main() {}
