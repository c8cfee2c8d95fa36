//~ words: Rest | pass captured tensors as arguments
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Key;
    struct Feat;
}

fn called(x: Array2<f32>, y: Array2<f32>) {
    let y = y.at((Key, Feat));
    batched(Batch, x.at((Batch, Feat)), |x| batched(Key, y, |y| (x - y).square().sum(Feat)));
}

fn main() {
    let _ = called;
}
