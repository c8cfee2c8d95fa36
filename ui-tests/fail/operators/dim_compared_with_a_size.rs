//~ words: usize | isize | as isize
use typed_dims::prelude::*;

fn before(x: &Array1<f32>, n: usize) {
    dims!(i);
    let _ = select(i.lt(n), x.at(i), 0.0);
}

fn main() {
    let _ = before;
}
