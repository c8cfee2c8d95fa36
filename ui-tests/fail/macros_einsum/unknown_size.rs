//~ words: no axis `d`
use typed_dims::prelude::*;

fn main() {
    let (a, b) = (Array2::<f64>::ones((2, 2)), Array2::<f64>::ones((2, 2)));
    let c = Array2::<i32>::ones((2, 2));
    let _ = einsum!("(ab)c->abc", a, a = 2, d = 3);
    drop((a, b, c));
}
