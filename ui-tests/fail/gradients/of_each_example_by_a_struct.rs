//~ words: the loss has the dims | for a struct, differentiate with respect to its tensors
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Feat; }

#[derive(Parameters)]
struct Net {
    w: Tensor<f64, (Feat,)>,
}

#[batched]
fn slopes(net: &Net, x: &Tensor<f64, (Feat,)>) -> Tensor<f64, (Feat,)> {
    grad(|net| (x.contract(&net.w, Feat)).square(), net).w
}

fn main() {}
