//~ words: expected `Stream<f32, (B, I, K), K>` | found `Stream<f32, (B, I, K), B>`
//! `[b! i j] @ [b j! k] -> [b! i k]`, not `[b i k!]`.

use typed_dims::prelude::*;

dims! {
    pub struct B;
    pub struct I;
    pub struct J;
    pub struct K;
}

fn product(x: &Stream<f32, (B, I, J), B>, y: &Stream<f32, (B, J, K), J>) -> Stream<f32, (B, I, K), K> {
    x.allow_dynamic_weights().contract(y, J)
}

fn main() {}
