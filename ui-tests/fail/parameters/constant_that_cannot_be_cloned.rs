//~ words: `Schedule: Clone` is not satisfied
use typed_dims::prelude::*;

dims! { pub struct Width; }

struct Schedule;

#[derive(Parameters)]
struct Layer {
    weight: Tensor<f32, (Width,)>,
    #[parameters(constant)]
    schedule: Schedule,
}

fn main() {}
