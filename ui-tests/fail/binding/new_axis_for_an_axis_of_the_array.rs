//~ words: Rank2 | Rank1 | one binder for each axis
use typed_dims::prelude::*;

fn column(x: &Array2<f32>) {
    dims!(i);
    x.at((i, NewAxis));
}

fn main() {
    let _ = column;
}
