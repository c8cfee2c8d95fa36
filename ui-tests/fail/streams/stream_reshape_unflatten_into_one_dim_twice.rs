//~ words: dimension `B` is named twice | (B, B)
//! Each part needs a different dim.

use typed_dims::prelude::*;

dims! {
    pub struct AB;
    pub struct B;
    pub struct C;
}

fn deep(x: &Stream<f32, (AB, C), C>) {
    let _ = x.unflatten(AB, (B, B));
}

fn main() {}
