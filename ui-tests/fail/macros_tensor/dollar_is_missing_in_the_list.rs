//~ words: the loop `i` and the dim `$i` are different
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 2));
    dims!(i);
    let _ = tensor!([i] => a[$i, 0]);
}
