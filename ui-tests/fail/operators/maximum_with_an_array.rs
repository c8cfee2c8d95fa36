//~ words: cannot be combined
use typed_dims::prelude::*;

fn main() {
    let x = Array1::<f32>::ones(2);
    dims!(i);
    let _ = x.at(i).maximum(&x);
}
