//~ words: not `bool`s | f32 | x.gt(0.0)
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn nonzero(x: Tensor<f32, (Seq,)>) {
    x.any(Seq);
}

fn main() {
    let _ = nonzero;
}
