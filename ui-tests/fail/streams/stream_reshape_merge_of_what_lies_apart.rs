//~ words: `(A, C)` are not neighbours | (A, B, C)
//! What is merged lies side by side.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
    pub struct AC;
}

fn flat(x: &Stream<f32, (A, B, C), B>) {
    let _ = x.merge((A, C), AC);
}

fn main() {}
