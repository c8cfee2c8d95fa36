//~ words: the arguments of `tensor!` cannot depend on the loop `i`
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::ones((2, 2));
    let _ = tensor!([i] => (tensor!([j] => a[i, j]))[0]);
}
