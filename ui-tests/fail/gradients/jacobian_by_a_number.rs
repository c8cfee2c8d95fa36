//~ words: no Jacobian with respect to `f64` | full((), x)
use typed_dims::grad::jacobian;
use typed_dims::prelude::*;

dims! { pub struct In; }

fn main() {
    let x = ones::<f64, _>(In.of(2));
    let slopes = jacobian(|by: f64| (&x * by).eval(), 2.0);
}
