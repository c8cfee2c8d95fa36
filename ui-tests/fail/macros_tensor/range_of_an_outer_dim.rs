//~ words: sets its size
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    dims!(n);
    let _ = tensor!([$n in 0..2, j] => a[$n, j]);
}
