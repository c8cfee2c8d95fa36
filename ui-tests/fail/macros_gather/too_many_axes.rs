//~ words: Rank2 | Rank3
use typed_dims::prelude::*;

fn main() {
    let (x, ids) = (Array2::<f64>::ones((2, 2)), Array1::<usize>::zeros(3));
    let _ = gather!(x[_ f c], ids[p] => p f c);
}
