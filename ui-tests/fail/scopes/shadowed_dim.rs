//~ words: line_8::i<'_> | line_5::i<'_> | not bound
use typed_dims::prelude::*;

fn main() {
    dims!(i);
    let a = Array1::<f32>::zeros(3);
    let x = a.at(i);
    dims!(i);
    x.sum(i);
}
