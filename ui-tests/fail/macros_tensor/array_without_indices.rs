//~ words: cannot be combined | one value of type | a[i, j]
use typed_dims::prelude::*;

fn main() {
    let (x, y) = (Array1::<f64>::ones(2), Array1::<f64>::ones(2));
    let _ = tensor!([i] => x + y[i]);
}
