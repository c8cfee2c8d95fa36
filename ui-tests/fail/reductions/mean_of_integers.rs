//~ words: i64 | cast
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn average(x: Tensor<i64, (Seq,)>) {
    x.mean(Seq);
}

fn main() {
    let _ = average;
}
