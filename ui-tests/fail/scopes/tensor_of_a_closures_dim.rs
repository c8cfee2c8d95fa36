//~ words: `k`
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::zeros(3);
    let bind = || {
        dims!(k);
        a.at(k).eval()
    };
    bind();
}
