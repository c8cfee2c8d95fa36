//~ words: `Heads` | 12 | `Feat` | 64
use typed_dims::prelude::*;

dims! {
    struct Heads = 12;
    struct Feat = 64;
}

fn wrong(x: Tensor<f32, (Heads,)>) {
    x.rename(Heads, Feat);
}

fn main() {
    let _ = wrong;
}
