//~ words: 2 parameters | as a slice
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let _ = reduce!(x, h w -> h, |a: f32, b: f32| a + b);
}
