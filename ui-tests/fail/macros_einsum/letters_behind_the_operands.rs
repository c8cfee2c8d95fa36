//~ words: consists of names | comes first
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let _ = einsum!(a, a, "ik,kj->ij");
}
