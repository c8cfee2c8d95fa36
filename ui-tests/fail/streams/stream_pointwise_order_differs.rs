//~ words: does not match | (B, A) | (A, B)
//! `[a! b]` and `[b a!]` have the same dims in another order.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
}

fn greater(x: &Stream<f32, (A, B), A>, y: &Stream<f32, (B, A), A>) {
    let _ = x.maximum(y);
}

fn main() {}
