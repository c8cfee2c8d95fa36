//~ words: `Key` | not bound | (Seq, Feat)
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Key;
    struct Feat;
}

fn weights(x: Tensor<f32, (Seq, Feat)>) {
    x.softmax(Key);
}

fn main() {
    let _ = weights;
}
