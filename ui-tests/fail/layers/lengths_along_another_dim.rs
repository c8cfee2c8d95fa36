//~ words: `K` | not bound | (Batch, Hidden)
use typed_dims::nn::Lstm;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Time;
    struct Input;
    struct Hidden;
    struct Next;
    struct K;
}

fn mistake(
    network: &Lstm<Input, Hidden, Next>,
    x: &Tensor<f32, (Batch, Time, Input)>,
    lengths: &Tensor<usize, (K,)>,
) {
    network.apply_padded(x, Time, lengths, None);
}

fn main() {
    let _ = mistake;
}
