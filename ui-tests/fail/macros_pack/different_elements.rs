//~ words: the arrays of a list need elements of one type | f32 | f64
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let b = Array1::<f32>::ones(2);
    let _ = pack!([a, b], h *);
}
