//~ words: mismatched types | usize
use typed_dims::prelude::*;

fn main() {
    dims!(i = 2.0);
}
