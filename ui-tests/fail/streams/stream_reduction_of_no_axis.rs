//~ words: dimension `C` is not bound | (A, B)
//! A reduction over a dim that is not an axis.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn total(x: &Stream<f32, (A, B), A>) {
    let _ = x.sum(C);
}

fn main() {}
