//~ words: is not a dim
use typed_dims::prelude::*;

fn main() {
    let (a, n) = (Array2::<f64>::ones((2, 2)), 2);
    let _ = rearrange!(a, $n w -> w $n);
}
