//~ words: `(Word,)` is not a declared dim | not the tuple
use typed_dims::nn::Embedding;
use typed_dims::prelude::*;

dims! { pub struct Word; pub struct Width; }

fn show(_table: &Embedding<(Word,), (Width,)>) {}

fn main() {}
