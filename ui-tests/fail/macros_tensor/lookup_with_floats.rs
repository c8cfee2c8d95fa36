//~ words: f32 | cannot be indices
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i, j] => a[a[i, j], 0]);
}
