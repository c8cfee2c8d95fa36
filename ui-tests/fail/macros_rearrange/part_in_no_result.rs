//~ words: is in no result | `-> h w1, h w2`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let _ = rearrange!(a, h (w1 + w2) -> h w1 w2, w1 = 1);
}
