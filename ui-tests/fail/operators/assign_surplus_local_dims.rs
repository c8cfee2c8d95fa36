//~ words: (i<'_>,) | (i<'_>, j<'_>)
use typed_dims::prelude::*;

fn main() {
    dims!(i, j);
    let a = Array2::<f32>::zeros((2, 3));
    let mut out = Array1::<f32>::zeros(2);
    out.at_mut(i).assign(a.at((i, j)));
}
