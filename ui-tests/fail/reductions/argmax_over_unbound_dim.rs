//~ words: `Key` | not bound | (Seq, Feat)
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Key;
    struct Feat;
}

fn best(x: &Tensor<f32, (Seq, Feat)>) {
    x.argmax(Key);
}

fn main() {
    let _ = best;
}
