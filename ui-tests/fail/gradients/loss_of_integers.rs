//~ words: a loss of type `i32` has no gradient | cast
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

fn main() {
    let counts = from_vec(Pixel.of(2), vec![1_i32, 2]);
    let weight = ones::<f32, _>(Pixel.of(2));
    let slope = grad(|_| counts.sum(Pixel), &weight);
    println!("{slope}");
}
