//~ words: local dims belong in a function | `dims! { struct I; struct J; }`
use typed_dims::prelude::*;

dims!(i, j);

fn main() {}
