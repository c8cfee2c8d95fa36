//~ words: `Input` | not bound | (Batch, Time)
use typed_dims::nn::Lstm;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Time;
    struct Input;
    struct Hidden;
    struct Next;
}

fn mistake(network: &Lstm<Input, Hidden, Next>, x: &Tensor<f32, (Batch, Time)>) {
    network.apply(x, Time, None);
}

fn main() {
    let _ = mistake;
}
