//~ words: `f32` | cast the loop variable first: `i as f32`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i, j] => a[i, j] * i);
}
