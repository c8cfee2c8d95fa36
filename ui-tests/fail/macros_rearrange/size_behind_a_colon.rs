//~ words: write the size of an axis with `=`
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let _ = rearrange!(x, h (w k) -> h w k, k: 3);
}
