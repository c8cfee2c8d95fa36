//~ words: `Time` | not bound | (Batch, Input)
use typed_dims::nn::Gru;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Time;
    struct Input;
    struct Hidden;
    struct Next;
}

fn mistake(network: &Gru<Input, Hidden, Next>, x: &Tensor<f32, (Batch, Input)>) {
    network.apply(x, Time, None);
}

fn main() {
    let _ = mistake;
}
