//~ words: mismatched types
use typed_dims::grad::jacobian;
use typed_dims::prelude::*;

dims! { pub struct In; }

#[derive(Parameters)]
struct Line {
    slope: Option<Tensor<f64, (In,)>>,
}

fn main() {
    let line = Line { slope: Some(ones(In.of(2))) };
    let j = jacobian(|line: &Line| line.slope.as_ref().unwrap().sum(In), &line);
    let by_slope = j.by(|line| &line.slope);
}
