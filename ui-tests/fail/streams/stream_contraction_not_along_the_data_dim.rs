//~ words: `J` is not the data dimension | `K` | allow_dynamic_weights
//! `[i j] @ [j k!]` without dynamic weights.

use typed_dims::prelude::*;

dims! {
    pub struct I;
    pub struct J;
    pub struct K;
}

fn product(x: &Stream<f32, (J, K), K>, weight: &Tensor<f32, (I, J)>) {
    let _ = x.contract(weight, J);
}

fn main() {}
