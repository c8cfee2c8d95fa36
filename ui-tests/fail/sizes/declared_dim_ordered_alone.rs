//~ words: Tok | no size | Tok.of(2)
use typed_dims::prelude::*;

dims! { struct Tok; }

fn main() {
    let positions: Array1<isize> = Tok.order(Tok);
    drop(positions);
}
