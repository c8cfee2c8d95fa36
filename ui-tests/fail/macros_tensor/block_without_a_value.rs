//~ words: needs a value
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i, j] => { let x = a[i, j]; });
}
