//~ words: no axis of `(A, BC)` has the stride | `B` | (A, B, C)
//! `[a b! c] -> [a (b * c)!]` in one step.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B = 3;
    pub struct C = 4;
    pub struct BC = 12;
}

fn flat(x: &Stream<f32, (A, B, C), B>) {
    let _ = x.reshape((A, BC));
}

fn main() {}
