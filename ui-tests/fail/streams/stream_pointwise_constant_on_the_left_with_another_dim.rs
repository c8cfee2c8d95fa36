//~ words: a constant of `f32` with the dims `(A, C)` does not match | (A, B) | contract
//! A bias on the left, with a dim that the stream lacks.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn biased(x: &Stream<f32, (A, B), A>, bias: &Tensor<f32, (A, C)>) {
    let _ = bias + x;
}

fn main() {}
