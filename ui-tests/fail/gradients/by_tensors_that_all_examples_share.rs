//~ words: with respect to tensors with | Rest<B>
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Feat; }

fn slopes<B: Dims>(w: &Tensor<f64, (Feat,)>, x: &Tensor<f64, (Feat, Rest<B>)>) -> Tensor<f64, (Feat,)> {
    grad(|w| (w * x).sum(Feat).square(), w)
}

fn main() {}
