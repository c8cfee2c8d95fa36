//~ words: expected `f32` | Named<f32, ()>
use typed_dims::prelude::*;

fn total(a: &Array2<f32>) -> f32 {
    dims!(i, j);
    a.at((i, j)).sum((i, j))
}

fn main() {}
