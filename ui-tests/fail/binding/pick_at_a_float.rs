//~ words: {float} | cannot be bound
use typed_dims::prelude::*;

fn main() {
    dims!(j);
    let a = Array2::<f32>::zeros((2, 3));
    a.at((0.5, j));
}
