//~ words: f32 | f64
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn chosen(x: Tensor<f32, (Seq,)>) {
    x.gt(0.0).select(&x, 0.0_f64);
}

fn main() {
    let _ = chosen;
}
