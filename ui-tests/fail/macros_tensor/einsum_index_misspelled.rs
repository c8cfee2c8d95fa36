//~ words: occurs only once | did you mean `chan`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let b = Array2::<f32>::ones((3, 4));
    let _ = einsum!(a[i, chan] * b[chn, j] => [i, j, chan]);
}
