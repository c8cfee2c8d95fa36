//~ words: not a tensor
use typed_dims::prelude::*;

fn transposed(a: Array2<f32>) {
    dims!(i, j);
    a.order((j, i));
}

fn main() {
    let _ = transposed;
}
