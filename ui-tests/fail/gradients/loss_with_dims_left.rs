//~ words: the loss has the dims | Class
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; pub struct Class; }

fn main() {
    let image = ones::<f32, _>(Pixel.of(4));
    let weight = ones::<f32, _>((Pixel.of(4), Class.of(3)));
    let slope = grad(|weight| (&image * weight).sum(Pixel), &weight);
    println!("{slope}");
}
