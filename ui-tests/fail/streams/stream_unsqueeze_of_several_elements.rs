//~ words: `Three` has a static size other than 1
//! A new axis has one element.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct Three = 3;
}

fn row(x: &Stream<f32, (A,), A>) {
    let _ = x.new_axis_before(A, Three);
}

fn main() {}
