//~ words: expected identifier | `in`
use typed_dims::prelude::*;

fn main() {
    dims!(out, in);
}
