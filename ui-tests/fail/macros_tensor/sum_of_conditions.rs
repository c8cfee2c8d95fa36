//~ words: bool | count[i](..)
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i] => sum[j](x[i, j] > 1.0));
}
