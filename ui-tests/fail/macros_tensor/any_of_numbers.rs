//~ words: take conditions
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f64>::ones((2, 2));
    let _ = tensor!([i] => any[j](x[i, j]));
}
