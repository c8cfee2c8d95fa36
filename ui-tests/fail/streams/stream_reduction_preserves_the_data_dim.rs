//~ words: expected `Stream<f32, (One, B), A>` | found `Stream<f32, (One, B), One>`
//! `[a! b].sum(dim=0, keepdim=True) -> [1! b]`: the stream flows along the kept axis.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct One = 1;
}

fn mean(x: &Stream<f32, (A, B), A>) -> Stream<f32, (One, B), A> {
    x.mean_keepdim(A, One)
}

fn main() {}
