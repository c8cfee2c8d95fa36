//~ words: expected `&Named<f64, (Out,)>` | found `&Named<f64, (In,)>`
use typed_dims::grad::vjp;
use typed_dims::prelude::*;

dims! { pub struct In; pub struct Out; }

fn main() {
    let weight = ones::<f64, _>((In.of(2), Out.of(3)));
    let x = ones::<f64, _>(In.of(2));
    let (_, pullback) = vjp(|x| (&weight * x).sum(In), &x);
    println!("{}", pullback(&x));
}
