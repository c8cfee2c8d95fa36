//~ words: the arguments of `dbg!` cannot depend on the loop `i` | closure
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::ones(2);
    let _ = tensor!([i] => dbg!(a[i]));
}
