//~ words: expected `=>` after the loops | [i, j] => a[i, j]
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i, j] a[i, j]);
}
