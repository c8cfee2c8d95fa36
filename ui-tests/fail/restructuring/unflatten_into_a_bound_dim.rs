//~ words: dimension `B` is already bound | this tensor has `B` already
//! A part cannot be another dim of the tensor.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn deep(x: Tensor<f32, (A, B)>) {
    let _ = x.unflatten(A, (B, C));
}

fn main() {}
