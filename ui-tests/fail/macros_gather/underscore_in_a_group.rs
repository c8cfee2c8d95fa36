//~ words: `_` is a whole axis
use typed_dims::prelude::*;

fn main() {
    let table = Array2::<f64>::ones((4, 6));
    let ids = typed_dims::ndarray::Array1::<usize>::zeros(2);
    let _ = gather!(table[(a b) (_ c)], ids[p] => p a b c, a = 2);
}
