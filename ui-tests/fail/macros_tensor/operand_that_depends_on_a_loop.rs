//~ words: an operand cannot depend on the loop `i`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i, j] => a.row(i)[j]);
}
