//~ words: loop variable | f32
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let limit = 1.5f32;
    let _ = tensor!([i, j] => if i < limit { a[i, j] } else { 0.0 });
}
