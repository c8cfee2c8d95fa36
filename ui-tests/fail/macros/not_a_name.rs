//~ words: expected the name of a dim
use typed_dims::prelude::*;

fn main() {
    dims!(i, 3);
}
