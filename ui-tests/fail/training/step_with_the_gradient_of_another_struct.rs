//~ words: `&Small` | `&Large`
use typed_dims::optim::AdamW;
use typed_dims::prelude::*;

dims! {
    struct In;
    struct Out;
    struct Other;
}

#[derive(Parameters)]
struct Small {
    weight: Tensor<f32, (In, Out)>,
}

#[derive(Parameters)]
struct Large {
    weight: Tensor<f32, (In, Out)>,
}

fn mistake(network: &mut Small, gradient: &Large) {
    AdamW::new(0.1).step(network, gradient);
}

fn main() {
    let _ = mistake;
}
