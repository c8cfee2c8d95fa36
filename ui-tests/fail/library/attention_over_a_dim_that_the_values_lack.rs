//~ words: `Key` | not bound | (Place, Feat)
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Key;
    struct Place;
    struct Feat;
}

fn heard(q: &Tensor<f32, (Seq, Feat)>, k: &Tensor<f32, (Key, Feat)>, v: &Tensor<f32, (Place, Feat)>) {
    attention(q, k, v, Feat, Key, 0.125, true);
}

fn main() {
    let _ = heard;
}
