//~ words: positional axes
use typed_dims::prelude::*;

dims! {
    struct Batch;
}

#[batched]
fn total(x: &Tensor<f32, (), U2>) -> Tensor<f32, ()> {
    dims!(i, j);
    x.at((i, j)).sum((i, j))
}

fn called(x: Array2<f32>) {
    total(x.at((Batch, ..)));
}

fn main() {
    let _ = called;
}
