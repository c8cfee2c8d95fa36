//~ words: eval()
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Feat;
}

fn called(x: Array2<f32>) {
    batched(Batch, x.at((Batch, Feat)) * 2.0, |x| x.sum(Feat));
}

fn main() {
    let _ = called;
}
