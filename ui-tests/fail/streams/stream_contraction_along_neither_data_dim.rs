//~ words: `J` must be the data dimension of exactly one | `I` and `K`
//! `[i! j] @ [j k!]`: neither stream flows along the contracted dim.

use typed_dims::prelude::*;

dims! {
    pub struct I;
    pub struct J;
    pub struct K;
}

fn product(x: &Stream<f32, (I, J), I>, y: &Stream<f32, (J, K), K>) {
    let _ = x.allow_dynamic_weights().contract(y, J);
}

fn main() {}
