//~ words: write the arrays as a list
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let _ = pack!(a, a, h *);
}
