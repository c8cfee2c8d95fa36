//~ words: cannot find value `Sq` | Seq
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn total(x: Tensor<f32, (Seq,)>) {
    x.sum(Sq);
}

fn main() {
    let _ = total;
}
