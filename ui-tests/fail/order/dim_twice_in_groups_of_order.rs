//~ words: `w<'_>` | twice
use typed_dims::prelude::*;

fn main() {
    dims!(h, w);
    let a = Array2::<f32>::zeros((2, 3));
    a.at((h, w)).order((w, (h, w)));
}
