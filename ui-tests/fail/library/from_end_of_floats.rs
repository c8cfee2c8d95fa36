//~ words: indices | integers
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Query;
}

fn last(positions: Tensor<f32, (Query,)>) {
    positions.from_end(Seq.of(4));
}

fn main() {
    let _ = last;
}
