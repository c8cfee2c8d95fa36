//~ words: the axes `(A, C)` lack the dims `(B,)`
//! A stream lists all its axes.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn flow(x: Tensor<f32, (A, B, C)>) {
    let _ = x.stream((A, C), C);
}

fn main() {}
