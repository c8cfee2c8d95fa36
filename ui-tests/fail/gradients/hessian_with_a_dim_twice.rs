//~ words: the dim `In` twice
use typed_dims::grad::hessian;
use typed_dims::prelude::*;

dims! { pub struct In; }

fn main() {
    let x = ones::<f64, _>(In.of(2));
    let slopes = hessian(|x| x.square().sum(In), &x, (In,), (In,));
    println!("{slopes}");
}
