//~ words: i64 | floating-point
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn weights(x: Tensor<i64, (Seq,)>) {
    x.softmax(Seq);
}

fn main() {
    let _ = weights;
}
