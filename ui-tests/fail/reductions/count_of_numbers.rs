//~ words: not `bool`s | f32 | x.gt(0.0)
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn positive(x: Tensor<f32, (Seq,)>) {
    x.count(Seq);
}

fn main() {
    let _ = positive;
}
