//~ words: the dim `In` twice | rename
use typed_dims::grad::jacobian;
use typed_dims::prelude::*;

dims! { pub struct In; }

fn main() {
    let x = ones::<f64, _>(In.of(2));
    let slopes = jacobian(|x: &Tensor<f64, (In,)>| x.square().eval(), &x);
    println!("{slopes}");
}
