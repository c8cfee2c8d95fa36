//~ words: f32 | i32 | let
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i, j] => let y: i32 = x[i, j]; y + 1);
}
