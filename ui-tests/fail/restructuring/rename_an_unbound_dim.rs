//~ words: `Key` | not bound | (Seq,)
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Key;
    struct Query;
}

fn renamed(x: Tensor<f32, (Seq,)>) {
    x.rename(Key, Query);
}

fn main() {
    let _ = renamed;
}
