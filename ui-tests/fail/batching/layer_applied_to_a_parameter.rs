//~ words: mismatched types | Rest<
use typed_dims::nn::Linear;
use typed_dims::prelude::*;

dims! { pub struct In; pub struct Out; }

#[batched]
fn apply(layer: &Linear<(In,), (Out,)>, x: &Tensor<f32, (In,)>) -> Tensor<f32, (Out,)> {
    layer.apply(x)
}

fn main() {}
