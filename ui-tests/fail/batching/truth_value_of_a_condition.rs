//~ words: one `bool` cannot stand for all examples | `condition.select(a, b)`
use typed_dims::prelude::*;

dims! { pub struct State; }

#[batched]
fn filter(z: &Tensor<f32, (State,)>) -> Tensor<f32, (State,)> {
    let missing: bool = z.is_nan().any(State).order(());
    if missing { z.nan_to(0.0).eval() } else { z.eval() }
}

fn main() {
    dims!(n);
    let _ = filter(Array2::<f32>::ones((2, 3)).at((n, State)));
}
