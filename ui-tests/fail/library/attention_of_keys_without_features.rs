//~ words: `Feat` | not bound | (Key, Axis)
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Key;
    struct Feat;
    struct Axis;
}

fn heard(q: &Tensor<f32, (Seq, Feat)>, k: &Tensor<f32, (Key, Axis)>, v: &Tensor<f32, (Key, Feat)>) {
    attention(q, k, v, Feat, Key, 0.125, true);
}

fn main() {
    let _ = heard;
}
