//~ words: f32 | index
use typed_dims::prelude::*;

fn main() {
    dims!(i, f);
    let ids = Array1::<f32>::zeros(4);
    let table = Array2::<f32>::zeros((10, 3));
    table.at((ids.at(i), f));
}
