//~ words: Batch | twice | pass this tensor as an argument
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Feat;
}

fn called(x: Array2<f32>) {
    let x = x.at((Batch, Feat));
    batched(Batch, x, |one| (one + x).sum(Feat));
}

fn main() {
    let _ = called;
}
