//~ words: must return a number, a `bool` | x / m
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn share(x: Tensor<f32, (Seq,)>, m: &Tensor<f32, ()>) {
    x.map(|v| v / m);
}

fn main() {
    let _ = share;
}
