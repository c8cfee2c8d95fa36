//~ words: set_size
use typed_dims::prelude::*;

fn main() {
    dims!(space: [2] = 4);
}
