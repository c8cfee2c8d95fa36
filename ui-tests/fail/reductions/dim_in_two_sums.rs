//~ words: `k<'_>` | not bound | (i<'_>,)
use typed_dims::prelude::*;

fn main() {
    dims!(i, k);
    let a = Array2::<f32>::zeros((2, 3));
    a.at((i, k)).sum(k).sum(k);
}
