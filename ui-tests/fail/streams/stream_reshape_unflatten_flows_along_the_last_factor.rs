//~ words: expected `Stream<f32, (A, N, B, C), N>` | found `Stream<f32, (A, N, B, C), B>`
//! `[a (n * b)! c] -> [a n b! c]`, not `[a n! b c]`.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct N;
    pub struct B = 3;
    pub struct NB;
    pub struct C;
}

fn blocks(x: &Stream<f32, (A, NB, C), NB>) -> Stream<f32, (A, N, B, C), N> {
    x.unflatten(NB, (N, B))
}

fn main() {}
