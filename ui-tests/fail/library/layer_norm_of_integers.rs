//~ words: i64 | cast
use typed_dims::prelude::*;

dims! {
    struct Feat;
}

fn norm(x: &Tensor<i64, (Feat,)>) {
    x.layer_norm(Feat, 0);
}

fn main() {
    let _ = norm;
}
