//~ words: `Feat` | not bound | (Seq, Key)
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Key;
    struct Feat;
}

fn product(x: &Tensor<f32, (Seq,)>, y: &Tensor<f32, (Key,)>) {
    x.dot(y, Feat);
}

fn main() {
    let _ = product;
}
