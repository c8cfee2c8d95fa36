//~ words: Feat | left over
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Feat;
}

#[batched]
fn called(x: &Tensor<f32, (Seq, Feat)>) -> Tensor<f32, (Seq,)> {
    x * 2.0
}

fn main() {}
