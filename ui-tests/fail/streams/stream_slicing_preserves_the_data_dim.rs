//~ words: expected `Stream<f32, (A, B), A>` | found `Stream<f32, (A, B), B>`
//! `[a b!][:n, :] -> [n b!]`, not `[n! b]`.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
}

fn head(x: &Stream<f32, (A, B), B>) -> Stream<f32, (A, B), A> {
    x.slice(A, ..3)
}

fn main() {}
