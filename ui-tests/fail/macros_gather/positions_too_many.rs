//~ words: 1 for 2
use typed_dims::prelude::*;

fn main() {
    let (a, b) = (Array2::<f64>::ones((2, 2)), Array2::<f64>::ones((2, 2)));
    let c = Array2::<i32>::ones((2, 2));
    let _ = gather!(a[_ f], c[b s], c[b s] => b s f);
    drop((a, b, c));
}
