//~ words: `Network` | derive(Parameters)
use typed_dims::optim::Adam;
use typed_dims::prelude::*;

dims! {
    struct In;
    struct Out;
    struct Other;
}

struct Network {
    weight: Tensor<f32, (In, Out)>,
}

fn mistake(network: &mut Network, gradient: &Network) {
    Adam::new(0.1).step(network, gradient);
}

fn main() {
    let _ = mistake;
}
