//~ words: bool | f32
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn chosen(x: Tensor<f32, (Seq,)>) {
    x.select(1.0_f32, 0.0);
}

fn main() {
    let _ = chosen;
}
