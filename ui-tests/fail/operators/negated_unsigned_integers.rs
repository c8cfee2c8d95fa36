//~ words: cannot apply unary operator | usize
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn negated(x: Tensor<usize, (Seq,)>) {
    let _ = -x;
}

fn main() {
    let _ = negated;
}
