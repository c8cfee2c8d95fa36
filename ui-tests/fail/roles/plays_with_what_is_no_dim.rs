//~ words: `{integer}` lacks the role | DataTime`
//! A role is asked of dims.

use typed_dims::prelude::*;

fn steps<D: Plays<DataTime>>(_: D) {}

fn main() {
    steps(3);
}
