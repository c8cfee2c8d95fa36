//~ words: `Input` | already bound
use typed_dims::nn::Lstm;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Time;
    struct Input;
    struct Hidden;
    struct Next;
}

fn mistake(network: &Lstm<Input, Hidden, Next>, x: &Tensor<f32, (Batch, Time, Input)>) {
    network.apply(x, Input, None);
}

fn main() {
    let _ = mistake;
}
