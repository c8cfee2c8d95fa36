//~ words: Tok | no size | Tok.of(2)
use typed_dims::prelude::*;

dims! { struct Tok; }

fn main() {
    let positions = Tok.cast::<f32>().eval();
    drop(positions);
}
