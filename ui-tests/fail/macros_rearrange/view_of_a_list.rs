//~ words: a list of arrays is not one array in memory
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f64>::ones((2, 2));
    let _ = rearrange_view!([a, a], n h w -> h n w);
}
