//~ words: expected `Stream<f32, (One, A), One>` | found `Stream<f32, (One, A), A>`
//! `[a!].unsqueeze(0) -> [1 a!]`, not `[1! a]`.

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct One = 1;
}

fn row(x: &Stream<f32, (A,), A>) -> Stream<f32, (One, A), One> {
    x.new_axis_before(A, One)
}

fn main() {}
