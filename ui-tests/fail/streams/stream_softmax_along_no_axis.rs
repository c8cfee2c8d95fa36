//~ words: dimension `C` is not bound | (A, B)
//! Softmax along a dim that is not an axis.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn weights(x: &Stream<f32, (A, B), B>) {
    let _ = x.softmax(C);
}

fn main() {}
