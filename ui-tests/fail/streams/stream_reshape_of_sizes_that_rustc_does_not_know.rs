//~ words: no axis of `(A, B, C)` has the stride | `A` | (A, BC) | `unflatten`
//! `[a! (b * c)] -> [a! b c]`, but rustc does not know that BC is B times C.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
    pub struct BC;
}

fn deep(x: &Stream<f32, (A, BC), A>) {
    let _ = x.reshape((A, B.of(3), C));
}

fn main() {}
