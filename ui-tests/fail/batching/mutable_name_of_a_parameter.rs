//~ words: `let mut` does not copy it | `let mut y = z.eval();`
use typed_dims::prelude::*;

dims! { pub struct State; }

#[batched]
fn filter(z: &Tensor<f32, (State,)>) -> Tensor<f32, (State,)> {
    let mut y = z;
    y *= 2.0;
    y.eval()
}

fn main() {
    dims!(n);
    let _ = filter(Array2::<f32>::ones((2, 3)).at((n, State)));
}
