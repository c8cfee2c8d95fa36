//~ words: write the pattern as a string
use typed_dims::prelude::*;

fn main() {
    const PATTERN: &str = "ij->ji";
    let x = Array2::<f64>::ones((2, 3));
    let _ = einsum!(PATTERN, x);
}
