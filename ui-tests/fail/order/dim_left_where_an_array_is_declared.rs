//~ words: mismatched types | j<'_>
use typed_dims::prelude::*;

fn rows(a: &Array2<f32>) -> Array1<f32> {
    dims!(i, j);
    a.at((i, j)).order(i)
}

fn main() {
    let _ = rows;
}
