//~ words: `f32` is not a loss | order(())
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

fn main() {
    let weight = ones::<f32, _>(Pixel.of(2));
    let slope = grad(|weight| weight.square().sum(Pixel).order(()), &weight);
    println!("{slope}");
}
