//~ words: f32 | cannot be indices
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Class;
}

fn loss(x: &Tensor<f32, (Batch, Class)>, target: &Tensor<f32, (Batch,)>) {
    x.cross_entropy(Class, target);
}

fn main() {
    let _ = loss;
}
