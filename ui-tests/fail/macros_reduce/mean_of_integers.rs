//~ words: no such reduction | mean | i32
use typed_dims::prelude::*;

fn main() {
    let (a, b) = (Array2::<f64>::ones((2, 2)), Array2::<f64>::ones((2, 2)));
    let c = Array2::<i32>::ones((2, 2));
    let _ = reduce!(c, h w -> h, mean);
    drop((a, b, c));
}
