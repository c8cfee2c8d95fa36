//~ words: expected an expression after this
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f64>::ones((2, 2));
    let _ = einsum!(x[i, j] * => [i, j]);
}
