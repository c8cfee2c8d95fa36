//~ words: cannot find type `i`
use typed_dims::prelude::*;

fn bound(a: &Array1<f32>) -> Tensor<f32, (i,)> {
    dims!(i);
    a.at(i).eval()
}

fn main() {
    let _ = bound;
}
