//~ words: one `f32` cannot stand for all examples | `Tensor<f32, ()>`
use typed_dims::prelude::*;

dims! { pub struct State; }

#[batched]
fn total(z: &Tensor<f32, (State,)>) -> f32 {
    z.sum(State).order(())
}

fn main() {
    dims!(n);
    let _ = total(Array2::<f32>::ones((2, 3)).at((n, State)));
}
