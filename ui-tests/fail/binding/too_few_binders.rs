//~ words: 2 axes | 1 axis
use typed_dims::prelude::*;

fn main() {
    dims!(i);
    let a = Array2::<f32>::zeros((2, 3));
    a.at(i);
}
