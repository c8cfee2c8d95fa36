//~ words: cannot add axes other than `1`
use typed_dims::prelude::*;

fn main() {
    let (a, b) = (Array2::<f64>::ones((2, 2)), Array2::<f64>::ones((2, 2)));
    let c = Array2::<i32>::ones((2, 2));
    let _ = reduce!(a, h w -> h 2, sum);
    drop((a, b, c));
}
