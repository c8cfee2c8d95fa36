//~ words: used up | borrow it
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn halves(x: Tensor<f32, (Seq,)>) {
    x.chunk(Seq, 2);
}

fn main() {
    let _ = halves;
}
