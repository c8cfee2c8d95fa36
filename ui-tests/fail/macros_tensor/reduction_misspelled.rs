//~ words: no reduction `summ` | did you mean `sum`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i] => summ[k](a[i, k]));
}
