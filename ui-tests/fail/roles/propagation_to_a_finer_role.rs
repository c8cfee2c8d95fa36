//~ words: `Word` has the role | DataFeature` | its new name `Place` | `Pixel`
//! Renaming does not turn a feature into a pixel.

use typed_dims::prelude::*;

roles! {
    pub struct Pixel: DataFeature;
}
dims! {
    pub struct Word: DataFeature;
    pub struct Place: Pixel;
}

fn places(x: Tensor<f32, (Word,)>) {
    let _ = x.rename(Word, Place);
}

fn main() {}
