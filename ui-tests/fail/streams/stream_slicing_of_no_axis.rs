//~ words: dimension `C` is not bound | (A, B)
//! A slice along a dim that is not an axis.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn head(x: &Stream<f32, (A, B), B>) {
    let _ = x.slice(C, ..3);
}

fn main() {}
