//~ words: expected `,` after the size
use typed_dims::prelude::*;

fn main() {
    dims!(i = 4 j);
}
