//~ words: Rank1 | Rank2
use typed_dims::prelude::*;

fn main() {
    let (a, b) = (Array2::<f64>::ones((2, 2)), Array2::<f64>::ones((2, 2)));
    let c = Array2::<i32>::ones((2, 2));
    let _ = einsum!("i,ij->j", a, b);
    drop((a, b, c));
}
