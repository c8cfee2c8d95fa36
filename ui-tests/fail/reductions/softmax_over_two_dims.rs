//~ words: not a dim
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Feat;
}

fn weights(x: Tensor<f32, (Seq, Feat)>) {
    x.softmax((Seq, Feat));
}

fn main() {
    let _ = weights;
}
