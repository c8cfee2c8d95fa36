//~ words: an alias | Tensor<..>
use typed_dims::prelude::*;

dims! {
    struct Feat;
}

type Features = Tensor<f32, (Feat,)>;

#[batched]
fn called(x: &Tensor<f32, (Feat,)>, bias: &Features) -> Tensor<f32, (Feat,)> {
    x * bias
}

fn main() {}
