//~ words: `man` is not a reduction | did you mean
use typed_dims::prelude::*;

fn main() {
    let (a, b) = (Array2::<f64>::ones((2, 2)), Array2::<f64>::ones((2, 2)));
    let c = Array2::<i32>::ones((2, 2));
    let _ = reduce!(a, h w -> h, man);
    drop((a, b, c));
}
