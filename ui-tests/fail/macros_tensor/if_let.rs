//~ words: `if let`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i, j] => if let 0.0 = a[i, j] { 1.0 } else { 0.0 });
}
