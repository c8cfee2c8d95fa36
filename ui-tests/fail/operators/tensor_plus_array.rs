//~ words: cannot be combined | ArrayBase
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn added(x: Tensor<f32, (Seq,)>, bias: &Array1<f32>) {
    let _ = x + bias;
}

fn main() {
    let _ = added;
}
