//~ words: did you mean `out`?
use typed_dims::prelude::*;

fn main() {
    let (a, b) = (Array2::<f64>::ones((2, 2)), Array2::<f64>::ones((2, 2)));
    let c = Array2::<i32>::ones((2, 2));
    let _ = einsum!(a, b, "batch chan, chan out -> batch oot");
    drop((a, b, c));
}
