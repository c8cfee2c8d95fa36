//~ words: cannot multiply | bool | f32
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn masked(mask: Tensor<bool, (Seq,)>, x: Tensor<f32, (Seq,)>) -> Tensor<f32, (Seq,)> {
    (mask * x).eval()
}

fn main() {
    let _ = masked;
}
