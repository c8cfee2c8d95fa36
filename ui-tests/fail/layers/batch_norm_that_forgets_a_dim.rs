//~ words: `(Channel,)` | (Channel, Row)
use typed_dims::nn::BatchNorm;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Channel;
    struct Row;
}

fn mistake(norm: &BatchNorm<(Channel,)>, x: &Tensor<f32, (Batch, Channel, Row)>) {
    norm.train(x, Batch);
}

fn main() {
    let _ = mistake;
}
