//~ words: is not a dim
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let n = 2;
    let _ = tensor!([$n, j] => x[$n, j]);
}
