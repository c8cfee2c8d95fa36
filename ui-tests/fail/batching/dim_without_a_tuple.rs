//~ words: `Seq` is used as a value, so it seems to be a dim | write `(Seq,)`
use typed_dims::prelude::*;

dims! { struct Seq; }

#[batched]
fn total(x: &Tensor<f32, Seq>) -> Tensor<f32, ()> {
    x.sum(Seq)
}

fn main() {}
