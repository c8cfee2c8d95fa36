//~ words: expected an axis | ²
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f64>::ones((2, 3));
    let _ = rearrange!(x, "m² n -> n m");
}
