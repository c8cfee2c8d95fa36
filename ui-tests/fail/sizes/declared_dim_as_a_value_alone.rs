//~ words: Tok | no size | Tok.of(n)
use typed_dims::prelude::*;

dims! { struct Tok; }

fn main() {
    let positions = Tok.cast::<f32>().eval();
    drop(positions);
}
