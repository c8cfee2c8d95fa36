//~ words: expected | 2 elements
use typed_dims::prelude::*;

fn main() {
    dims!(i = 2, j = 3);
    from_fn((i, j), |(a, b, c)| a + b + c);
}
