//~ words: a tensor's elements may not be computed yet
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    dims!(q);
    let t = a.at((q, ..));
    let _ = rearrange!([a.row(0), t], n h -> h n);
}
