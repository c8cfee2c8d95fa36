//~ words: take conditions, not elements of type `f32` | compare the elements
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::ones(2);
    let _ = tensor!([i] => a[i] > 0.0 && a[i]);
}
