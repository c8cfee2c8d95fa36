//~ words: expected `Stream<f32, (N, B), N>` | found `Stream<f32, (N, B), B>`
//! `[1 b!] -> [n b!]`, not `[n! b]`.

use typed_dims::prelude::*;

dims! {
    pub struct B;
    pub struct N;
    pub struct One = 1;
}

fn tall(x: &Stream<f32, (One, B), B>) -> Stream<f32, (N, B), N> {
    x.broadcast(One, N.of(6))
}

fn main() {}
