//~ words: tensors of `i64` have no `exp` | .cast::<f32>()
//! Integers have no such functions.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
}

fn growth(x: &Stream<i64, (A, B), B>) {
    let _ = x.exp();
}

fn main() {}
