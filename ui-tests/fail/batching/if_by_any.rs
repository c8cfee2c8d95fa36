//~ words: `if` runs once for all examples | `condition.select(a, b)`
use typed_dims::prelude::*;

dims! { pub struct State; }

#[batched]
fn filter(z: &Tensor<f32, (State,)>) -> Tensor<f32, (State,)> {
    if z.is_nan().any(State) { z.nan_to(0.0) } else { z * 1.0 }
}

fn main() {
    dims!(n);
    let _ = filter(Array2::<f32>::ones((2, 3)).at((n, State)));
}
