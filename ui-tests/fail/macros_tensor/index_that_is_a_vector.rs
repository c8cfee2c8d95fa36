//~ words: Vec<usize> | cannot be an index
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let rows = vec![0usize, 1];
    let _ = tensor!([j] => x[rows, j]);
}
