//~ words: needs a parameter | written as a tensor
use typed_dims::prelude::*;

dims! {
    struct Feat;
}

type Features = Tensor<f32, (Feat,)>;

#[batched]
fn called(x: &Features) -> Tensor<f32, (Feat,)> {
    x * 2.0
}

fn main() {}
