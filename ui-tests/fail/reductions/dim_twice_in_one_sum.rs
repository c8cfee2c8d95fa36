//~ words: `k<'_>` | twice
use typed_dims::prelude::*;

fn main() {
    dims!(i, k);
    let a = Array2::<f32>::zeros((2, 3));
    a.at((i, k)).sum((k, k));
}
