//~ words: f32 | index
use typed_dims::prelude::*;

fn main() {
    dims!(i);
    let ids = Array1::<f32>::zeros(4);
    let table = Array1::<f32>::zeros(10);
    table.at(ids.at(i));
}
