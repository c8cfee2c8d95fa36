//~ words: not `bool`s | f32 | x.gt(0.0)
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn positions(x: Tensor<f32, (Seq,)>) {
    dims!(n);
    x.nonzero(Seq, n);
}

fn main() {
    let _ = positions;
}
