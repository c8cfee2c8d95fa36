//~ words: `i` has no size | cannot be inferred
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i] => a[i % 2, 0]);
}
