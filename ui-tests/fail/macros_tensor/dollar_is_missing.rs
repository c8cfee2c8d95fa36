//~ words: this loop runs over the dim `i` | write `$i` here
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::ones(2);
    dims!(i);
    let _ = tensor!([$i] => a[i]);
}
