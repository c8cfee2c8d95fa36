//~ words: Named<f32, (A, C)>` does not match a stream | (A, B) | a constant
//! A bias with a dim that the stream lacks.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn biased(x: &Stream<f32, (A, B), A>, bias: &Tensor<f32, (A, C)>) {
    let _ = x + bias;
}

fn main() {}
