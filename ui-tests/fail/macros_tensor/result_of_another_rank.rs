//~ words: mismatched types
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let out: Array1<f32> = tensor!([i, j] => a[i, j]);
}
