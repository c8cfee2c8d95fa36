//~ words: dimension `A` is already bound | (A, One)
//! A broadcast to a dim that is already an axis.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct One = 1;
}

fn square(x: &Stream<f32, (A, One), A>) {
    let _ = x.broadcast(One, A.of(6));
}

fn main() {}
