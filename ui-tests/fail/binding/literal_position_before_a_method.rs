//~ words: type annotations needed | order
use typed_dims::prelude::*;

fn rows(x: &Array2<f32>) -> usize {
    dims!(i);
    x.at((i, 0)).order(i).len()
}

fn main() {
    let _ = rows;
}
