//~ words: type annotations needed
use typed_dims::prelude::*;

fn reversed() -> Array1<isize> {
    dims!(i = 4);
    (3 - i).order(i)
}

fn main() {
    let _ = reversed;
}
