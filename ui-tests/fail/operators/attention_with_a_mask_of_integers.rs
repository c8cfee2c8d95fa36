//~ words: neither a mask nor a bias | bool
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Key;
    struct Feat = 4;
}

fn heard(q: &Tensor<f32, (Seq, Feat)>, k: &Tensor<f32, (Key, Feat)>, mask: Tensor<u8, (Key,)>) {
    attention(q, k, k, Feat, Key, 0.5, mask);
}

fn main() {
    let _ = heard;
}
