//~ words: mutable
use typed_dims::optim::Sgd;
use typed_dims::prelude::*;

dims! {
    struct In;
    struct Out;
    struct Other;
}

fn mistake(weight: &Tensor<f32, (In, Out)>, gradient: &Tensor<f32, (In, Out)>) {
    Sgd::new(0.1).step(weight, gradient);
}

fn main() {
    let _ = mistake;
}
