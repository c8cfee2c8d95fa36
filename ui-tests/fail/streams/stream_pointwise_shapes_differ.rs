//~ words: does not match | (A, C) | (A, B)
//! `[a! b] * [a! c]`

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn product(x: &Stream<f32, (A, B), A>, y: &Stream<f32, (A, C), A>) {
    let _ = x * y;
}

fn main() {}
