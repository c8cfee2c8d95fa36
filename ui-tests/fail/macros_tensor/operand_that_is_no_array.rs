//~ words: the method `at` | f32
use typed_dims::prelude::*;

fn main() {
    let x = 1.0f32;
    let _ = tensor!([i] => x[i]);
}
