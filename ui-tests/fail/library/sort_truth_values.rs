//~ words: bool | order
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn sorted(x: &Tensor<bool, (Seq,)>) {
    x.sort(Seq);
}

fn main() {
    let _ = sorted;
}
