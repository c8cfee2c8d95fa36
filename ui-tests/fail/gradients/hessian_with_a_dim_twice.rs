//~ words: the Hessian would have the dim `Prime<In>` twice | hessian(f
use typed_dims::grad::hessian_primed;
use typed_dims::prelude::*;

dims! { pub struct In; }

fn main() {
    let x = ones::<f64, _>((In.of(2), prime(In.of(2))));
    let slopes = hessian_primed(|x| x.square().sum((In, prime(In))), &x);
    println!("{slopes}");
}
