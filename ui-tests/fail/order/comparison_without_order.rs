//~ words: `>` cannot be applied | Named<f32, ()>
use typed_dims::prelude::*;

fn is_positive(a: &Array2<f32>) -> bool {
    dims!(i, j);
    a.at((i, j)).sum((i, j)) > 0.0
}

fn main() {}
