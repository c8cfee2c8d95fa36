//~ words: mutable
use typed_dims::prelude::*;

fn clear(a: &Array1<f32>) {
    dims!(i);
    a.at_mut(i).assign(0.0);
}

fn main() {
    let _ = clear;
}
