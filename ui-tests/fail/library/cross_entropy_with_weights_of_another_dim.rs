//~ words: does not have a weight for each class | Class
use typed_dims::nn::loss::CrossEntropy;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Class;
}

fn loss(x: &Tensor<f32, (Batch, Class)>, y: &Tensor<usize, (Batch,)>, weights: &Tensor<f32, (Batch,)>) {
    x.cross_entropy_with(Class, y, CrossEntropy::new().weights(weights));
}

fn main() {
    let _ = loss;
}
