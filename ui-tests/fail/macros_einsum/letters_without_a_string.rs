//~ words: in a string
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let _ = einsum!(ik,kj->ij, a, a);
}
