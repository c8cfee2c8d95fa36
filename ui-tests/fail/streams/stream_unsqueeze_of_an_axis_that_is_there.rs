//~ words: dimension `B` is already bound | (A, B)
//! The new axis already exists.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
}

fn row(x: &Stream<f32, (A, B), A>) {
    let _ = x.new_axis_after(A, B);
}

fn main() {}
