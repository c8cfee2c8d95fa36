//~ words: `()` is not a dim
//! The flattened axis needs a dim.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
}

fn flat(x: &Stream<f32, (A, B), B>, nothing: ()) {
    let _ = x.flatten((A, B), nothing);
}

fn main() {}
