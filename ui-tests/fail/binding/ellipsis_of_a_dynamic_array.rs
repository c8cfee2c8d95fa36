//~ words: but not of an `ArrayD`
use typed_dims::prelude::*;

fn main() {
    let a = ArrayD::<f32>::zeros(vec![2, 3, 4]);
    dims!(i);
    let _ = a.at((i, Ellipsis)).sum(i);
}
