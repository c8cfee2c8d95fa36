//~ words: not a position | take
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Query;
}

fn asked_for(x: Tensor<f32, (Seq,)>, positions: Tensor<usize, (Query,)>) {
    x.index(Seq, &positions);
}

fn main() {
    let _ = asked_for;
}
