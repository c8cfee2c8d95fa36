//~ words: range with both ends
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i in 0.., j] => a[i, j]);
}
