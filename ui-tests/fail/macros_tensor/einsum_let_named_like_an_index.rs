//~ words: `j` is already a loop
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let b = Array1::<f32>::ones(3);
    let _ = einsum!({ let j = 1; a[i, j] } * b[j] => [i]);
}
