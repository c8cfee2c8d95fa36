//~ words: write the indices of the result in brackets
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let b = Array2::<f32>::ones((3, 4));
    let _ = einsum!(a[i, k] * b[k, j] => (i, j));
}
