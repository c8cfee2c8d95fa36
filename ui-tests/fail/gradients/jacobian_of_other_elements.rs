//~ words: no Jacobian with respect to | element type
use typed_dims::grad::jacobian;
use typed_dims::prelude::*;

dims! { pub struct In; pub struct Out; }

fn main() {
    let (w, x) = (ones::<f32, _>((In.of(2), Out.of(3))), ones::<f64, _>(In.of(2)));
    let slopes = jacobian(|(w, x)| (w.cast::<f64>() * x).sum(In), (&w, &x));
}
