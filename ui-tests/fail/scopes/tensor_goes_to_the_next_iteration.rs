//~ words: `k` does not live long enough
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::zeros(3);
    let mut last = None;
    for _ in 0..3 {
        dims!(k);
        last.replace(a.at(k).eval());
    }
}
