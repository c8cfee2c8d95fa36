//~ words: &f32 | cannot be computed
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i] => &x[i, 0]);
}
