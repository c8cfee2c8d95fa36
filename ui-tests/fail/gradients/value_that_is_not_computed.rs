//~ words: is not made of tensors | .eval()
use typed_dims::grad::jvp;
use typed_dims::prelude::*;

dims! { pub struct In; }

fn main() {
    let x = ones::<f64, _>(In.of(2));
    let (_, slope) = jvp(|x: &Tensor<f64, (In,)>| x.exp(), &x, &x);
    println!("{slope:?}");
}
