//~ words: not an order of dims | NewAxis
use typed_dims::prelude::*;

fn columns(x: &Array2<f32>) {
    dims!(i, j);
    x.at((i, j)).order((i, (NewAxis, j)));
}

fn main() {
    let _ = columns;
}
