//~ words: cannot contain `for`, `while` or `loop`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i] => { for k in 0..3 { a[i, k] } });
}
