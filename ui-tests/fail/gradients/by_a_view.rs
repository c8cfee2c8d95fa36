//~ words: derivative with respect to | .eval()
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

fn main() {
    let weights = vec![1.0_f32, 2.0];
    let slope = grad(|weight| weight.square().sum(Pixel), &weights.at(Pixel));
    println!("{slope}");
}
