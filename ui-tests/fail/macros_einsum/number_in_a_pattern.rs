//~ words: would be summed silently
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f64>::ones((2, 3));
    let _ = einsum!(x, "i 3 -> i");
}
