//~ words: dimension `B` is already bound | (A, B)
//! `stack` takes a new dim.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
}

fn both(x: &Stream<f32, (A, B), A>, y: &Stream<f32, (A, B), A>) {
    let _ = Stream::stack_before(A, B, [x, y]);
}

fn main() {}
