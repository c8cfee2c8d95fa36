//~ words: an arm of `match` cannot depend on the loop `j`
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let _ = tensor!([i, j] => match x[i, 0] { y if y > 0.0 => x[0, j] * x[i, j], _ => 0.0 });
}
