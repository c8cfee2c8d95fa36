//~ words: mismatched types
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn bound(a: &Array1<f32>) -> Tensor<f32, (Seq,)> {
    a.at(Seq)
}

fn main() {
    let _ = bound;
}
