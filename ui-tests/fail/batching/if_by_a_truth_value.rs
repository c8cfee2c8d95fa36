//~ words: cannot depend on the values of `missing`
use typed_dims::prelude::*;

dims! { pub struct State; }

#[batched]
fn filter(z: &Tensor<f32, (State,)>) -> Tensor<f32, (State,)> {
    let missing = z.is_nan().any(State).order(());
    if !missing { (z * 1.0).eval() } else { z.nan_to(0.0).eval() }
}

fn main() {
    dims!(n);
    let _ = filter(Array2::<f32>::ones((2, 3)).at((n, State)));
}
