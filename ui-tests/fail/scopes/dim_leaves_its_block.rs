//~ words: `k` does not live long enough | dropped here
use typed_dims::prelude::*;

fn main() {
    let dim = {
        dims!(k);
        k
    };
    let _ = dim.size();
}
