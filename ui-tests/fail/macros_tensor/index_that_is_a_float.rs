//~ words: an index must be an integer
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i] => a[i, 1.0]);
}
