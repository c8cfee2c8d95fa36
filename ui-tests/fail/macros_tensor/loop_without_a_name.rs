//~ words: a loop needs a name
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([_ in 0..2, j] => a[0, j]);
}
