//~ words: rate
use typed_dims::optim::Sgd;
use typed_dims::prelude::*;

dims! {
    struct In;
    struct Out;
    struct Other;
}

fn mistake() -> Sgd<Tensor<f32, (In, Out)>> {
    Sgd::new(1)
}

fn main() {
    let _ = mistake;
}
