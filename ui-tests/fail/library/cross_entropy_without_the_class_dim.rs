//~ words: `Class` | not bound | (Batch, Feat)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Feat;
    struct Class;
}

fn loss(x: &Tensor<f32, (Batch, Feat)>, target: &Tensor<usize, (Batch,)>) -> f32 {
    x.cross_entropy(Class, target).mean(Batch).order(())
}

fn main() {
    let _ = loss;
}
