//~ words: takes one expression
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i] => sum[k](a[i, k], a[i, k]));
}
