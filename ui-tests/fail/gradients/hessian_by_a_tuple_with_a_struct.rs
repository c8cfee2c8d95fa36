//~ words: no Hessian with respect to a tuple with | pass a reference to it alone
use typed_dims::grad::hessian_primed;
use typed_dims::prelude::*;

dims! { pub struct In; }

#[derive(Parameters)]
struct Line {
    slope: Tensor<f64, (In,)>,
}

fn main() {
    let (line, x) = (Line { slope: ones(In.of(2)) }, ones::<f64, _>(In.of(2)));
    let curves = hessian_primed(|(line, x): (&Line, &Tensor<f64, (In,)>)| (&line.slope * x).sum(In), (&line, &x));
}
