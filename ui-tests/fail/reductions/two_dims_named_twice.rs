//~ words: is named twice in `(I, J, J, I)`
use typed_dims::prelude::*;

dims! {
    struct I;
    struct J;
}

fn main() {
    let x = ones::<f32, _>((I.of(2), J.of(3)));
    let _ = x.sum((I, J, J, I));
}
