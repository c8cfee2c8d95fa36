//~ words: no derivative with respect to | a tuple of up to 12
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

fn main() {
    let x = ones::<f32, _>(Pixel.of(2));
    let all = (&x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x);
    grad(|x| x.0.sum(Pixel), all);
}
