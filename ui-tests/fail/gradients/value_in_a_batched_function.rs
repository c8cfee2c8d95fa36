//~ words: the loss has the dims | Rest<
use typed_dims::grad::value_and_grad;
use typed_dims::prelude::*;

dims! { pub struct Feat; }

#[batched]
fn slopes(w: &Tensor<f64, (Feat,)>, x: &Tensor<f64, (Feat,)>) -> Tensor<f64, (Feat,)> {
    value_and_grad(|w| (w * x).sum(Feat).square(), w).1
}

fn main() {}
