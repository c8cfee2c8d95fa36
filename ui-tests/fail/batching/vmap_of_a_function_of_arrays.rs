//~ words: function of 1 to 6 tensors
use typed_dims::prelude::*;

dims! {
    struct Batch;
}

fn doubled(x: &Array2<f32>) -> Array2<f32> {
    x * 2.0
}

fn called(x: Array3<f32>) {
    vmap(doubled, Batch)(x.at((Batch, .., ..)));
}

fn main() {
    let _ = called;
}
