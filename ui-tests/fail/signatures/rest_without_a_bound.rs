//~ words: `B: Dims`
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn total<B>(_: Tensor<f32, (Seq, Rest<B>)>) {}

fn main() {
    total::<()>;
}
