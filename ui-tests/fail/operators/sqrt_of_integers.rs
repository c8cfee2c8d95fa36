//~ words: i32 | cast
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn root(x: Tensor<i32, (Seq,)>) {
    x.sqrt();
}

fn main() {
    let _ = root;
}
