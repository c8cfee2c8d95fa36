//~ words: expected `=>` | found `->`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let _ = tensor!([i, j] -> a[i, j]);
}
