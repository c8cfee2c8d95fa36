//~ words: `Middle` | not bound | (Batch, In)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct In;
    struct Middle;
    struct Out;
}

fn product(x: &Tensor<f32, (Batch, In)>, w: &Tensor<f32, (In, Out)>) {
    x.contract(w, Middle);
}

fn main() {
    let _ = product;
}
