//~ words: bool | f32
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
