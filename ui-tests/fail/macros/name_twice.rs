//~ words: `i` | twice
use typed_dims::prelude::*;

fn main() {
    dims!(i, j, i);
}
