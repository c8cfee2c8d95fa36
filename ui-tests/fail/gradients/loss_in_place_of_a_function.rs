//~ words: is not a function of the inputs
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

fn main() {
    let weight: Tensor<f32, (Pixel,)> = ones(Pixel.of(3));
    let slope = grad(weight.view().square().sum(Pixel), &weight);
    println!("{slope}");
}
