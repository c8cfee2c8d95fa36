//~ words: did you mean `W`?
use typed_dims::prelude::*;

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let _ = rearrange!(x, H W -> w H);
}
