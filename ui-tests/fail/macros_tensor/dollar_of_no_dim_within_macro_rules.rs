//~ words: cannot find value `n`
use typed_dims::prelude::*;

macro_rules! column {
    ($x:expr) => {
        tensor!([$n] => $x[$n, 0])
    };
}

fn main() {
    let x = Array2::<f32>::ones((2, 3));
    let _ = column!(x);
}
