//~ words: `space0` | twice
use typed_dims::prelude::*;

fn main() {
    dims!(space: [2], space0);
}
