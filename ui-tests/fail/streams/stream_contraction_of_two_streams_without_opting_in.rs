//~ words: is not a constant | allow_dynamic_weights
//! `[i! j] @ [j! k]` without dynamic weights.

use typed_dims::prelude::*;

dims! {
    pub struct I;
    pub struct J;
    pub struct K;
}

fn product(x: &Stream<f32, (J, K), J>, y: &Stream<f32, (I, J), I>) {
    let _ = x.contract(y, J);
}

fn main() {}
