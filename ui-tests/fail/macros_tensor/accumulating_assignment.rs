//~ words: cannot contain assignments | sum[k](..)
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let mut total = 0.0;
    let _ = tensor!([i, j] => total += a[i, j]);
}
