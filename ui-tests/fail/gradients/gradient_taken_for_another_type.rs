//~ words: expected `Named<f64, (Out,)>` | found `Named<f64, (In,)>`
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct In; pub struct Out; }

fn main() {
    let x = ones::<f64, _>(In.of(2));
    let slope: Tensor<f64, (Out,)> = grad(|x| x.square().sum(In), &x);
    println!("{slope}");
}
