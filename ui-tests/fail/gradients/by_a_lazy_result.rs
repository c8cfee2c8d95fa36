//~ words: derivative with respect to | .eval()
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

fn main() {
    let weight = ones::<f32, _>(Pixel.of(2));
    let slope = grad(|weight| (weight * weight).sum(Pixel), &(&weight * 2.0));
    println!("{slope}");
}
