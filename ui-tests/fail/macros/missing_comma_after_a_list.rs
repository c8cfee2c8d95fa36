//~ words: expected `,` after the list
use typed_dims::prelude::*;

fn main() {
    dims!(space: [2] j);
}
