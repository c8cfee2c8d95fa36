//~ words: `Key` | already bound | (Seq, Key)
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Key;
}

fn renamed(x: Tensor<f32, (Seq, Key)>) {
    x.rename(Seq, Key);
}

fn main() {
    let _ = renamed;
}
