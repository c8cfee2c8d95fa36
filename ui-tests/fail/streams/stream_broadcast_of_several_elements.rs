//~ words: `Three` has a static size other than 1
//! Only an axis with one element can be broadcast.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct Three = 3;
}

fn wide(x: &Stream<f32, (A, Three), A>) {
    let _ = x.broadcast(Three, B.of(6));
}

fn main() {}
