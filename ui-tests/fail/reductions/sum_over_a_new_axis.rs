//~ words: NewAxis | not a dim
use typed_dims::prelude::*;

fn total(x: &Array1<f32>) {
    dims!(i);
    x.at(i).sum(NewAxis);
}

fn main() {
    let _ = total;
}
