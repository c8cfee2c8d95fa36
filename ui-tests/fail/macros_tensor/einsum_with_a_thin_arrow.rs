//~ words: expected `=>` | found `->`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let _ = einsum!(a[i, k] * a[k, j] -> [i, j]);
}
