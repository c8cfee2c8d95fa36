//~ words: Rank2 | Rank3 | one binder for each axis
use typed_dims::prelude::*;

fn main() {
    dims!(i, j, k);
    let a = Array2::<f32>::zeros((2, 3));
    a.at((i, j, k));
}
