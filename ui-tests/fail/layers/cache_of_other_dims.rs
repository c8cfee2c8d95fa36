//~ words: (Batch, Key, Feat) | (Batch, Token, Feat)
use typed_dims::nn::KeyValues;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Token;
    struct Key;
    struct Feat;
}

type Past = KeyValues<(Batch, Key, Feat), Key>;

fn mistake(past: &mut Past, keys: Tensor<f32, (Batch, Token, Feat)>, values: Tensor<f32, (Batch, Key, Feat)>) {
    past.push(keys, values);
}

fn main() {
    let _ = mistake;
}
