//~ words: expected the name of a loop
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::ones(2);
    let _ = einsum!(a[i] => [i, ()]);
}
