//~ words: `{float}` is not a seed | u64
use typed_dims::prelude::*;

dims! {
    struct Feat;
}

fn dropped(x: Tensor<f32, (Feat,)>) {
    x.dropout(0.25, 7.0);
}

fn main() {
    let _ = dropped;
}
