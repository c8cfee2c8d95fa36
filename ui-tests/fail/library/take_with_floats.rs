//~ words: f32 | cannot be indices
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Key;
}

fn pick(x: &Tensor<f32, (Seq,)>, at: &Tensor<f32, (Key,)>) {
    x.take(Seq, at);
}

fn main() {
    let _ = pick;
}
