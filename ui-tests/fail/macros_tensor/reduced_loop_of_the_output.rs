//~ words: `i` is already a loop
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i] => sum[i](a[i, 0]));
}
