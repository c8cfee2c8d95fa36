//~ words: `Feat` | not bound | (Heads,)
use typed_dims::prelude::*;

dims! {
    struct Heads;
    struct Feat;
    struct Model;
}

fn joined(x: Tensor<f32, (Heads,)>) {
    x.flatten((Heads, Feat), Model);
}

fn main() {
    let _ = joined;
}
