//~ words: derivative with respect to `&f32` | full((), x)
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

fn main() {
    let image = ones::<f32, _>(Pixel.of(2));
    let slope = grad(|rate: &f32| (&image * *rate).sum(Pixel), &0.5_f32);
    println!("{slope}");
}
