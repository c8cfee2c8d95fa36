//~ words: `k` does not live long enough
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::zeros(3);
    let x = {
        dims!(k);
        a.at(k)
    };
    drop(x);
}
