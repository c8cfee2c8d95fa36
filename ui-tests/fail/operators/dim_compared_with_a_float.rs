//~ words: isize | float
use typed_dims::prelude::*;

fn main() {
    dims!(i);
    i.lt(0.5);
}
