//~ words: `-1` is the size that the others leave
use typed_dims::prelude::*;

fn main() {
    let y = Array2::<f64>::ones((2, 6));
    let _ = unpack!(y, [[2], [-1], [-1]], h *);
}
