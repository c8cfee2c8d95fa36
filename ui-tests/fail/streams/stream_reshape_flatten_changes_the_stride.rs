//~ words: flattening `(B, C)` would change the stride | `B` | (A, B, C)
//! `[a b! c] -> [a (b * c)!]`

use typed_dims::prelude::*;

dims! {
    pub struct A;
    pub struct B;
    pub struct C;
    pub struct BC;
}

fn flat(x: &Stream<f32, (A, B, C), B>) {
    let _ = x.flatten((B, C), BC);
}

fn main() {}
