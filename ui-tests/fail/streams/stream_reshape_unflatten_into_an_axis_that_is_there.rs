//~ words: dimension `C` is already bound | (AB, C)
//! A part cannot be an existing axis.

use typed_dims::prelude::*;

dims! {
    pub struct AB;
    pub struct C;
    pub struct B;
}

fn deep(x: &Stream<f32, (AB, C), C>) {
    let _ = x.unflatten(AB, (B.of(3), C));
}

fn main() {}
