//~ words: put a space between
use typed_dims::prelude::*;

fn main() {
    let a = Array3::<f64>::ones((2, 2, 2));
    let _ = rearrange!(a, b... c -> c b ...);
}
