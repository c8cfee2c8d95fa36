//~ words: 2 axes | 3 axes
use typed_dims::prelude::*;

fn main() {
    dims!(i, j, k);
    let a = Array2::<f32>::zeros((2, 3));
    a.at((i, j, k, Ellipsis));
}
