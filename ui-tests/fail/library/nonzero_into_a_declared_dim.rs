//~ words: LocalDim | `Found`
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Found;
}

fn found(x: &Tensor<bool, (Seq,)>) {
    x.nonzero(Seq, Found);
}

fn main() {
    let _ = found;
}
