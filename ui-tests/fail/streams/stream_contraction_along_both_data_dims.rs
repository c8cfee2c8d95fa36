//~ words: `J` must be the data dimension of exactly one | `J` and `J`
//! `[i j!] @ [j! k]`: both streams flow along the contracted dim.

use typed_dims::prelude::*;

dims! {
    pub struct I;
    pub struct J;
    pub struct K;
}

fn product(x: &Stream<f32, (I, J), J>, y: &Stream<f32, (J, K), J>) {
    let _ = x.allow_dynamic_weights().contract(y, J);
}

fn main() {}
