//~ words: dimension `C` is not bound | (A, B)
//! `repeat` along a dim that is not an axis.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn twice(x: &Stream<f32, (A, B), A>) {
    let _ = x.repeat(C, 2);
}

fn main() {}
