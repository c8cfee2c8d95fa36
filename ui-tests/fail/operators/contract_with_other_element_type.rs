//~ words: cannot be combined with a tensor of `f32` | `.cast::<f32>()`
use typed_dims::prelude::*;

dims! { struct Feat; struct Out; }

fn applied(x: &Tensor<f32, (Feat,)>, w: &Tensor<f64, (Feat, Out)>) -> Tensor<f32, (Out,)> {
    x.contract(w, Feat)
}

fn main() {}
