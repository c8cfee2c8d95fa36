//~ words: a loss of type `usize` has no gradient | argmax
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Class; }

fn main() {
    let scores = ones::<f32, _>(Class.of(3));
    let slope = grad(|scores| scores.argmax(Class), &scores);
    println!("{slope}");
}
