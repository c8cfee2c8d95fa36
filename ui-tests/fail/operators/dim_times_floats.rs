//~ words: `Seq` | f32 | cast
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn positions(x: Tensor<f32, (Seq,)>) {
    let _ = x * Seq;
}

fn main() {
    let _ = positions;
}
