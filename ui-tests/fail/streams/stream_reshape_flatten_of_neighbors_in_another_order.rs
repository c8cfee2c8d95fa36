//~ words: `(B, A)` are not neighbors | (A, B)
//! Only dims in the order of the axes can be flattened.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct Both;
}

fn flattened(x: &Stream<f32, (A, B), B>) {
    let _ = x.flatten((B, A), Both);
}

fn main() {}
