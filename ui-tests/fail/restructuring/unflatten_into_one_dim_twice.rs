//~ words: dimension `P` is named twice | (P, P)
//! Each part needs a different dim.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct P;
}

fn square(x: Tensor<f32, (A,)>) {
    let _ = x.unflatten(A, (P, P));
}

fn main() {}
