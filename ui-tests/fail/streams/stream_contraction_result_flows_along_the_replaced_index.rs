//~ words: expected `Stream<f32, (I, K), K>` | found `Stream<f32, (I, K), I>`
//! `[i j] @ [j! k] -> [i! k]`, not `[i k!]`.

use typed_dims::prelude::*;

dims! {
    pub struct I;
    pub struct J;
    pub struct K;
}

fn product(x: &Stream<f32, (J, K), J>, weight: &Tensor<f32, (I, J)>) -> Stream<f32, (I, K), K> {
    x.contract(weight, J)
}

fn main() {}
