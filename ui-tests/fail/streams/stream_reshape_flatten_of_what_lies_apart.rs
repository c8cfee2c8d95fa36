//~ words: `(A, C)` are not neighbors | (A, B, C)
//! Only adjacent axes can be flattened.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
    pub struct AC;
}

fn flat(x: &Stream<f32, (A, B, C), B>) {
    let _ = x.flatten((A, C), AC);
}

fn main() {}
