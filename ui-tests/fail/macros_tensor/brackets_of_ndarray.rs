//~ words: in one pair of brackets
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i, j] => x[[i, j]]);
}
