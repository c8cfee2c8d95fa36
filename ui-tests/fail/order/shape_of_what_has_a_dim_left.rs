//~ words: (j<'_>,) | left over

use typed_dims::prelude::*;

fn rows(a: &Array2<f32>) -> usize {
    dims!(i, j);
    a.at((i, j)).order(i).shape()[0]
}

fn main() {
    rows(&Array2::zeros((2, 3)));
}
