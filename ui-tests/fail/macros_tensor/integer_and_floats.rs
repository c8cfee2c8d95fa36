//~ words: cannot be combined with elements of type `f32`
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i, j] => 1 + x[i, j]);
}
