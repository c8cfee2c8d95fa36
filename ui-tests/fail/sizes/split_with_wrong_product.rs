//~ words: `Model` | 768 | 12 | 32
use typed_dims::prelude::*;

dims! {
    struct Heads = 12;
    struct Feat = 32;
    struct Model = 768;
}

fn heads(x: Tensor<f32, (Model,)>) {
    x.unflatten(Model, (Heads, Feat));
}

fn main() {
    let _ = heads;
}
