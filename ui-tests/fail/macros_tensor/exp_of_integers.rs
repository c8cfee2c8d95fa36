//~ words: i64 | `exp`
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<i64>::ones((2, 3));
    let _ = tensor!([i, j] => x[i, j].exp() + 1.0);
}
