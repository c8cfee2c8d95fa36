//~ words: `axes` is given twice
use typed_dims::prelude::*;

dims! {
    pub struct In;
    pub struct Out;
}

type Weight = Tensor<f32, (In, Out)>;

#[derive(Load)]
struct Layer {
    #[load(axes = (Out, In), axes = (In, Out))]
    weight: Weight,
}

fn main() {}
