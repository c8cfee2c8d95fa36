//~ words: `j` has no size | `j in 0..n`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i, j] => a[i, 0]);
}
