//~ words: the pattern has 2 arrays on the left, but 1 operand is given
use typed_dims::prelude::*;

fn main() {
    let (x, y) = (Array2::<f64>::ones((2, 2)), Array2::<f64>::ones((2, 2)));
    let _ = rearrange!(x, y, a b -> b a);
    drop((x, y));
}
