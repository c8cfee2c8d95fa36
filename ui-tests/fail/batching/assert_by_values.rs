//~ words: this `assert!` runs once for all examples | cannot depend on the values of `z`
use typed_dims::prelude::*;

dims! { pub struct State; }

#[batched]
fn normalized(z: &Tensor<f32, (State,)>) -> Tensor<f32, (State,)> {
    assert!(z.sum(State).order(()) > 0.0, "the sum must be positive");
    (z / z.sum(State)).eval()
}

fn main() {
    dims!(n);
    let _ = normalized(Array2::<f32>::ones((2, 3)).at((n, State)));
}
