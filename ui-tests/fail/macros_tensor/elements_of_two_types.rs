//~ words: f64 | f32
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let d = Array2::<f64>::ones((2, 3));
    let _ = tensor!([i, j] => a[i, j] + d[i, j]);
}
