//~ words: `All` has `Static<5>` elements | not the sum of `(Static<2>, Static<4>)`
use typed_dims::operators::join::concat_to;
use typed_dims::prelude::*;

dims! {
    struct Front = 2;
    struct Back = 4;
    struct All = 5;
}

fn main() {
    let (x, y) = (ones::<f32, _>(Front), ones::<f32, _>(Back));
    concat_to(All, (Front, Back), (x, y));
}
