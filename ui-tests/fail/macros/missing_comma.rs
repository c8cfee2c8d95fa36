//~ words: expected `,`
use typed_dims::prelude::*;

fn main() {
    dims!(i j);
}
