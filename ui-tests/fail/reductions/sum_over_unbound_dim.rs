//~ words: `Key` | not bound | (Seq, Feat)
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Key;
    struct Feat;
}

fn total(x: Tensor<f32, (Seq, Feat)>) -> Tensor<f32, (Seq,)> {
    x.sum(Key)
}

fn main() {
    let _ = total;
}
