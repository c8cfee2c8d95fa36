//~ words: derivative with respect to | (&w, &b)
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

fn main() {
    let weight = ones::<f32, _>(Pixel.of(2));
    let bias = ones::<f32, _>(Pixel.of(2));
    let (dw, db) = grad(|(weight, bias)| (weight * bias).sum(Pixel), (weight, bias));
    println!("{dw} {db}");
}
