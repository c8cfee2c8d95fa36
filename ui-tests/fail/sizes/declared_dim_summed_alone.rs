//~ words: Tok | no size | Tok.of(2)
use typed_dims::prelude::*;

dims! { struct Tok; }

fn main() {
    let total = Tok.sum(Tok);
    drop(total);
}
