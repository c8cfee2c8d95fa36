//~ words: parentheses around
use typed_dims::prelude::*;

fn main() {
    let x = Array1::<f64>::ones(2);
    let _ = tensor!([i] => { x }[i]);
}
