//~ words: Rank2 | Rank1
use typed_dims::prelude::*;

fn main() {
    let (a, b) = (Array2::<f64>::ones((2, 2)), Array2::<f64>::ones((2, 2)));
    let c = Array2::<i32>::ones((2, 2));
    let _ = rearrange!([a, a.row(0)], n h w -> n w h);
    drop((a, b, c));
}
