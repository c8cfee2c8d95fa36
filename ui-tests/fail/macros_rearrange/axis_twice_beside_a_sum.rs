//~ words: `h` is named twice on the right
use typed_dims::prelude::*;

fn main() {
    let v = Array1::<f64>::ones(2);
    let _ = rearrange!(v, h -> h (h + 1));
    drop(v);
}
