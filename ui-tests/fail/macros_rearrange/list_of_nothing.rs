//~ words: an empty list of arrays
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let _ = rearrange!([], n h -> h n);
    drop(a);
}
