//~ words: `Middle` | not bound | (In, Out)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct In;
    struct Middle;
    struct Out;
}

fn product(x: &Tensor<f32, (Batch, In, Middle)>, w: &Tensor<f32, (In, Out)>) {
    x.contract(w, (In, Middle));
}

fn main() {
    let _ = product;
}
