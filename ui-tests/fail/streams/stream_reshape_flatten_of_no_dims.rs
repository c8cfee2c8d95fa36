//~ words: no dims are named here
//! No axes are neighbours of nothing.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn flat(x: &Stream<f32, (A, B), B>) {
    let _ = x.flatten((), C);
}

fn main() {}
