//~ words: expected `&Stream<f32, (A, B), A>` | found `&Stream<f32, (A, B), B>`
//! The parts flow along different dims.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
}

fn both(x: &Stream<f32, (A, B), A>, y: &Stream<f32, (A, B), B>) {
    let _ = Stream::concat(A, [x, y]);
}

fn main() {}
