//~ words: `Model` | 768 | 12 | 32
use typed_dims::prelude::*;

dims! {
    struct Heads = 12;
    struct Feat = 32;
    struct Model = 768;
}

fn joined(x: Tensor<f32, (Heads, Feat)>) {
    x.flatten((Heads, Feat), Model);
}

fn main() {
    let _ = joined;
}
