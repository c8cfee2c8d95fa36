//~ words: Prime<In>` twice | rename
use typed_dims::grad::jacobian;
use typed_dims::prelude::*;

dims! { pub struct In; pub struct Out; }

fn main() {
    let (w, x) = (ones::<f64, _>((In.of(2), Out.of(3))), ones::<f64, _>((In.of(2), prime(In.of(2)))));
    let (by_w, by_x) = jacobian(|(w, x)| (w * x).sum((Out, prime(In))), (&w, &x));
    println!("{by_w} {by_x}");
}
