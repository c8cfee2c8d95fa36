//~ words: no dims are named here
//! Flattening needs at least one axis.

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
