//~ words: (Batch,) | left over
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
}

fn found(x: &Tensor<bool, (Batch, Seq)>) {
    dims!(n);
    x.nonzero(Seq, n);
}

fn main() {
    let _ = found;
}
