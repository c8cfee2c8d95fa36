//~ words: cannot be changed
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::zeros(3);
    dims!(i);
    a.view().at_mut(i).assign(1.0);
}
