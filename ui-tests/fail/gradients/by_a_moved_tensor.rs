//~ words: derivative with respect to | &weight
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

fn main() {
    let weight = ones::<f32, _>(Pixel.of(2));
    let slope = grad(|weight: &Tensor<f32, (Pixel,)>| weight.square().sum(Pixel), weight);
    println!("{slope}");
}
