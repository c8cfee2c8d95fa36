//~ words: a number of dims
use typed_dims::prelude::*;

fn main() {
    dims!(space: [h, w]);
}
