//~ words: the arguments of `format!` cannot depend on the loop `i` | call the macro in a function
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::ones(2);
    let _ = tensor!([i] => a[i] + format!("{i}").len() as f32);
}
