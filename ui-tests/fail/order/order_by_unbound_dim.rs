//~ words: `k<'_>` | not bound | (i<'_>, j<'_>)
use typed_dims::prelude::*;

fn main() {
    dims!(i, j, k);
    let a = Array2::<f32>::zeros((2, 3));
    a.at((i, j)).order((i, k));
}
