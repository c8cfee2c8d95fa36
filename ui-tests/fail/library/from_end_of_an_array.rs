//~ words: not a size | usize
use typed_dims::prelude::*;

dims! {
    struct Query;
}

fn last(x: &Array1<f32>, positions: Tensor<i64, (Query,)>) {
    let _ = x.at(positions.from_end(x));
}

fn main() {
    let _ = last;
}
