//~ words: (Seq,) | (Batch, Seq)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
}

fn update(x: &mut Tensor<f32, (Seq,)>, y: &Tensor<f32, (Batch, Seq)>) {
    x.assign(y);
}

fn main() {
    let _ = update;
}
