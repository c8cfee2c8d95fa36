//~ words: `Word` | DataFeature` | `Pixel` is expected
//! A function that expects a pixel does not accept a feature, which is more general.

use typed_dims::prelude::*;

roles! {
    pub struct Pixel: DataFeature;
}
dims! {
    pub struct Row: Pixel;
    pub struct Word: DataFeature;
}

fn blur(_dims: impl Plays<Pixel>) {}

fn main() {
    blur(Row);
    blur(Word);
}
