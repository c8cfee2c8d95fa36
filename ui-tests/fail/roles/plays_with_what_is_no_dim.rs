//~ words: `{integer}` lacks the role | DataTime`
//! Only dims have roles.

use typed_dims::prelude::*;

fn steps<D: Plays<DataTime>>(_: D) {}

fn main() {
    steps(3);
}
