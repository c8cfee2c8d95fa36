//~ words: the Jacobian would have the dim | twice | vmap
use typed_dims::grad::jacobian;
use typed_dims::prelude::*;

dims! { pub struct In; }

#[batched]
fn slopes(x: &Tensor<f64, (In,)>) -> Tensor<f64, (In, Prime<In>)> {
    jacobian(|x| x.square().eval(), x)
}

fn main() {
    println!("{}", slopes(&ones::<f64, _>(In.of(2))));
}
