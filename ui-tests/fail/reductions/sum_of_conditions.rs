//~ words: bool | cast
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn count(x: Tensor<bool, (Seq,)>) {
    x.sum(Seq);
}

fn main() {
    let _ = count;
}
