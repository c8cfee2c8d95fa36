//~ words: not an order of dims
use typed_dims::prelude::*;

fn main() {
    dims!(i);
    let a = Array1::<f32>::zeros(2);
    a.at(i).order(0);
}
