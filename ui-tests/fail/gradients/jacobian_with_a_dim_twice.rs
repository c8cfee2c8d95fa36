//~ words: Prime<In>` twice | rename
use typed_dims::grad::jacobian;
use typed_dims::prelude::*;

dims! { pub struct In; }

fn main() {
    let x = ones::<f64, _>((In.of(2), prime(In.of(2))));
    let slopes = jacobian(|x: &Tensor<f64, (In, Prime<In>)>| x.sum(prime(In)), &x);
    println!("{slopes}");
}
