//~ words: cannot be combined | one value of type
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let y = Array1::<f32>::ones(3);
    let _ = tensor!([i, j] => x[i, j].max(y));
}
