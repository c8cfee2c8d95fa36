//~ words: `Two` has the size `Static<2>` | one element
//! What is kept has one element.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct Two = 2;
}

fn greatest(x: &Stream<f32, (A, B), A>) {
    let _ = x.max_keepdim(A, Two);
}

fn main() {}
