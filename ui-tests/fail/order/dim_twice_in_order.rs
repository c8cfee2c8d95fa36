//~ words: `i<'_>` | twice
use typed_dims::prelude::*;

fn main() {
    dims!(i, j);
    let a = Array2::<f32>::zeros((2, 3));
    a.at((i, j)).order((i, i, j));
}
