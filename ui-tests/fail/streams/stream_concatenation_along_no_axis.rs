//~ words: dimension `C` is not bound | (A, B)
//! `concat` along a dim that the parts lack.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn both(x: &Stream<f32, (A, B), A>, y: &Stream<f32, (A, B), A>) {
    let _ = Stream::concat(C, [x, y]);
}

fn main() {}
