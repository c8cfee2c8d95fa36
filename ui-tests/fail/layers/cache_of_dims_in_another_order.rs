//~ words: `(Batch, Head, Key, Feat)` are not in order of declaration | `(Batch, Key, Head, Feat)`
use typed_dims::nn::KeyValues;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Key;
    struct Head;
    struct Feat;
}

struct Decoder {
    past: KeyValues<(Batch, Head, Key, Feat), Key>,
}

fn main() {}
