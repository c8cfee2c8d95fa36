//~ words: bool
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn positive(x: Tensor<f32, (Seq,)>) {
    x.gt(0.0).sum(Seq);
}

fn main() {
    let _ = positive;
}
