//~ words: `{integer}` is not a dim | Batch.of(3)
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn sums(x: Tensor<f32, (Seq,)>, ids: Tensor<usize, (Seq,)>) {
    x.scatter_add(Seq, 7, ids);
}

fn main() {
    let _ = sums;
}
