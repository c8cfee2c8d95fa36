//~ words: a number of dims from 1 to 26
use typed_dims::prelude::*;

fn main() {
    dims!(space: [0]);
}
