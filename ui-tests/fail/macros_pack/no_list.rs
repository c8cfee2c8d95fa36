//~ words: is not a list of arrays
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let _ = pack!(a, h *);
}
