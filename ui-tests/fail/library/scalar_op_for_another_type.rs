//~ words: Half | i32
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

#[derive(Clone, Copy)]
struct Half;

impl ScalarOp<f32> for Half {
    type Out = f32;
    const NAME: &'static str = "half";

    fn apply<I: Isa>(self, x: f32) -> f32 {
        x / 2.0
    }
}

fn halves(x: &Tensor<i32, (Seq,)>) {
    x.apply(Half);
}

fn main() {
    let _ = halves;
}
