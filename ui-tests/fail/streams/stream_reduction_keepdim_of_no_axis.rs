//~ words: dimension `C` is not bound | (A, B)
//! The reduced dim is not an axis of the stream.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
    pub struct One = 1;
}

fn greatest(x: &Stream<f32, (A, B), A>) {
    let _ = x.max_keepdim(C, One);
}

fn main() {}
