//~ words: with the name of its axis | `r = 3`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let _ = repeat!(a, h w -> h w r, 3);
}
