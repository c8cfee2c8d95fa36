//~ words: bool | f32
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i, j] => if a[i, j] { 1.0 } else { 0.0 });
}
