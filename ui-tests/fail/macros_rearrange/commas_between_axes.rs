//~ words: separate axes with spaces
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let _ = rearrange!(a, h, w -> w, h);
}
