//~ words: `f32` | not made of tensors
use typed_dims::optim::Sgd;
use typed_dims::prelude::*;

dims! {
    struct In;
    struct Out;
    struct Other;
}

fn mistake(mut rate: f32) {
    Sgd::new(0.1).step(&mut rate, &1.0);
}

fn main() {
    let _ = mistake;
}
