//~ words: cannot be in a group on the left
use typed_dims::prelude::*;

fn main() {
    let (a, b) = (Array2::<f64>::ones((2, 2)), Array2::<f64>::ones((2, 2)));
    let c = Array2::<i32>::ones((2, 2));
    let _ = rearrange!(a, (h ...) w -> h ... w);
    drop((a, b, c));
}
