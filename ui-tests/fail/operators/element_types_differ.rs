//~ words: f32 | f64 | cast
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn added(x: Tensor<f32, (Seq,)>, y: Tensor<f64, (Seq,)>) {
    let _ = x + y;
}

fn main() {
    let _ = added;
}
