//~ words: the arguments of `matches!` cannot depend on the loop `i` | write a `match`
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<u8>::ones(2);
    let _ = tensor!([i] => if matches!(i, 0) { a[i] } else { 0 });
}
