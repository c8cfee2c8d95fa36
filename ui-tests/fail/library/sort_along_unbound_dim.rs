//~ words: `Key` | not bound | (Seq,)
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Key;
}

fn sorted(x: &Tensor<f32, (Seq,)>) {
    x.sort(Key);
}

fn main() {
    let _ = sorted;
}
