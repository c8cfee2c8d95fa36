//~ words: each letter of `batch` would be an index
use typed_dims::prelude::*;

fn main() {
    let (q, k) = (Array3::<f32>::ones((2, 3, 4)), Array3::<f32>::ones((2, 3, 4)));
    let _ = einsum!("batch q d, batch k d -> batch q k", q, k);
}
