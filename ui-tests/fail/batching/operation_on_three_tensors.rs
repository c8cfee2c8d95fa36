//~ words: (f32, f32) | if there is a third value
use typed_dims::prelude::*;

dims! {
    struct Feat;
}

#[derive(Clone, Copy)]
struct Middle;

impl ScalarOp<(f32, f32, f32)> for Middle {
    type Out = f32;
    const NAME: &'static str = "middle";

    fn apply<I: Isa>(self, (a, b, c): (f32, f32, f32)) -> f32 {
        a.max(b).min(c)
    }
}

fn called(x: &Tensor<f32, (Feat,)>) {
    x.apply_with(x, Middle);
}

fn main() {
    let _ = called;
}
