//~ words: expected the name of a loop
use typed_dims::prelude::*;

fn main() {
    let _ = tensor!([()] => 1);
}
