//~ words: expected an axis, found `-`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 2));
    let _ = repeat!(a, h w -> h w -2);
}
