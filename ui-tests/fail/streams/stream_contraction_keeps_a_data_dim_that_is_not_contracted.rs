//~ words: expected `Stream<f32, (I, K), I>` | found `Stream<f32, (I, K), K>`
//! `[b i j] @ [b j k!] -> [b i k!]`, not `[b i! k]`.

use typed_dims::prelude::*;

dims! {
    pub struct I;
    pub struct J;
    pub struct K;
}

fn product(x: &Stream<f32, (J, K), K>, weight: &Tensor<f32, (I, J)>) -> Stream<f32, (I, K), I> {
    x.allow_dynamic_weights().contract(weight, J)
}

fn main() {}
