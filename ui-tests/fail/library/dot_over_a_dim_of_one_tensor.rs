//~ words: `Out` | not bound | (Batch, In)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct In;
    struct Out;
}

fn product(x: &Tensor<f32, (Batch, In)>, w: &Tensor<f32, (In, Out)>) {
    x.dot(w, Out);
}

fn main() {
    let _ = product;
}
