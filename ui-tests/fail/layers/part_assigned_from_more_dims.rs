//~ words: (Key, Feat) | (Key, Head, Feat) | assigned
use typed_dims::prelude::*;

dims! {
    struct Key;
    struct Head;
    struct Feat;
}

fn mistake(cache: &mut Tensor<f32, (Key, Feat)>, new: &Tensor<f32, (Key, Head, Feat)>) {
    cache.slice_mut(Key, ..1).assign(new);
}

fn main() {
    let _ = mistake;
}
