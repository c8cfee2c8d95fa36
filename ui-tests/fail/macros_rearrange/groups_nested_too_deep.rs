//~ words: more than 32 deep
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f64>::ones(2);
    let _ = rearrange!(a, "((((((((((((((((((((((((((((((((((((((((i)))))))))))))))))))))))))))))))))))))))) -> i");
}
