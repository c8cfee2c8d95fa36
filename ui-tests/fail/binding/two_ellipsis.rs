//~ words: one `Ellipsis`
use typed_dims::prelude::*;

fn main() {
    dims!(i);
    let a = Array3::<f32>::zeros((2, 3, 4));
    a.at((Ellipsis, i, Ellipsis));
}
