//~ words: `All` has `Static<5>` elements | not the sum of `(Static<2>, Static<4>)`
use typed_dims::prelude::*;

dims! {
    struct Front = 2;
    struct Back = 4;
    struct All = 5;
}

fn main() {
    let x = ones::<f32, _>(All);
    (&x).split_to(All, (Front, Back));
}
