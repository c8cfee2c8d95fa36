//~ words: Batch | no size | Batch.of(2)
use typed_dims::prelude::*;

dims! { struct Batch; struct Feat; }

fn repeated(bias: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Batch, Feat)> {
    bias.expand(Batch).eval()
}

fn main() {
    let _ = repeated;
}
