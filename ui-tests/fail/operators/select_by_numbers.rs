//~ words: bool | f32
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn chosen(x: Tensor<f32, (Seq,)>) {
    select(&x, &x, 0.0_f32);
}

fn main() {
    let _ = chosen;
}
