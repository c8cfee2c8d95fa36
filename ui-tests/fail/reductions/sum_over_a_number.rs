//~ words: not a dim
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn total(x: Tensor<f32, (Seq,)>) {
    x.sum(0);
}

fn main() {
    let _ = total;
}
