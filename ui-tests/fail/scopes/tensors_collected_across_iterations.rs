//~ words: `k` does not live long enough
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::zeros(3);
    let mut all = Vec::new();
    for _ in 0..3 {
        dims!(k);
        all.push(a.at(k).eval());
    }
    drop(all);
}
