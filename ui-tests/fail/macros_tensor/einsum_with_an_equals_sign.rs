//~ words: expected `=>`, found `=`
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f64>::ones((2, 2));
    let _ = einsum!(x[i, j] * x[j, k] = [i, k]);
}
