//~ words: the loss has the dims | Out
use typed_dims::grad::hvp;
use typed_dims::prelude::*;

dims! { pub struct In; pub struct Out; }

fn main() {
    let weight = ones::<f64, _>((In.of(2), Out.of(3)));
    let x = ones::<f64, _>(In.of(2));
    let product = hvp(|x| (&weight * x).sum(In), &x, &x);
    println!("{product}");
}
