//~ words: `Two` has a static size other than 1
//! The kept dim must have one element.

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
