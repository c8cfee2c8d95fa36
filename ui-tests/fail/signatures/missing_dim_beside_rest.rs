//~ words: mismatched types | Feat
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Feat;
}

fn model<B: Dims>(_: Tensor<f32, (Feat, Rest<B>)>) {}

fn run(x: Tensor<f32, (Seq,)>) {
    model::<()>(x);
}

fn main() {
    let _ = run;
}
