//~ words: did you mean `mean`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let _ = reduce!(a, h w -> h, average);
}
