//~ words: `Token` | not bound
use typed_dims::prelude::*;

dims! {
    struct Token;
    struct Key;
    struct Feat;
}

fn mistake(cache: &mut Tensor<f32, (Key, Feat)>) {
    cache.slice_mut(Token, ..1).assign(0.0);
}

fn main() {
    let _ = mistake;
}
