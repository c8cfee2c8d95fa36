//~ words: `A` is the data dimension | sum_keepdim(A, One)
//! `[a! b].sum(dim=0)` must keep the dim.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
}

fn total(x: &Stream<f32, (A, B), A>) {
    let _ = x.sum(A);
}

fn main() {}
