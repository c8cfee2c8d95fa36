//~ words: `-1` stands for the size that remains
use typed_dims::prelude::*;

fn main() {
    let y = Array2::<f64>::ones((2, 6));
    let _ = unpack!(y, [[2], [-1], [-1]], h *);
}
