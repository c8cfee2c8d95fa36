//~ words: one `Vec` cannot stand for all examples | `typed_dims::batch::map_each(z, |x| ..)`
use typed_dims::prelude::*;

dims! { pub struct State; }

#[batched]
fn listed(z: &Tensor<f32, (State,)>) -> Vec<f32> {
    z.order(State).to_vec()
}

fn main() {
    dims!(n);
    let _ = listed(Array2::<f32>::ones((2, 3)).at((n, State)));
}
