//~ words: a clone is a view, too | `let mut y = z.eval();`
use typed_dims::prelude::*;

dims! { pub struct State; }

#[batched]
fn filter(z: &Tensor<f32, (State,)>) -> Tensor<f32, (State,)> {
    let mut y = z.clone();
    y = select(y.lt(0.0), 0.0, y).eval();
    y
}

fn main() {
    dims!(n);
    let _ = filter(Array2::<f32>::ones((2, 3)).at((n, State)));
}
