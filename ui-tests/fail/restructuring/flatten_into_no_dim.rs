//~ words: `{integer}` is not a dim
//! The flattened axis needs a dim.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
}

fn flat(x: Tensor<f32, (A, B, C)>) {
    let _ = x.flatten((A, B), 6);
}

fn main() {}
