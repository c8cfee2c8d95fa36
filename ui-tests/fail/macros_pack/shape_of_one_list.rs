//~ words: is not the shape of packed arrays
use typed_dims::prelude::*;

fn main() {
    let y = Array2::<f64>::ones((2, 6));
    let _ = unpack!(y, [2, 4], h *);
}
