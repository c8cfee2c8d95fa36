//~ words: expected `&Named<f64, (In,)>` | found `&Named<f64, (Out,)>`
use typed_dims::grad::jvp;
use typed_dims::prelude::*;

dims! { pub struct In; pub struct Out; }

fn main() {
    let weight = ones::<f64, _>((In.of(2), Out.of(3)));
    let x = ones::<f64, _>(In.of(2));
    let direction = ones::<f64, _>(Out.of(3));
    let (_, slope) = jvp(|x| (&weight * x).sum(In), &x, &direction);
    println!("{slope}");
}
