//~ words: `C` is not bound | (A, B)
//! A stream flows along one of its own axes.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn flow(x: Tensor<f32, (A, B)>) {
    let _ = x.stream((A, B), C);
}

fn main() {}
