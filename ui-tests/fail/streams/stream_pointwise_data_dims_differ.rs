//~ words: Stream<f32, (A, B), B>` does not match a stream | data dimension `A`
//! `[a! b] + [a b!]`

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
}

fn sum(x: &Stream<f32, (A, B), A>, y: &Stream<f32, (A, B), B>) {
    let _ = x + y;
}

fn main() {}
