//~ words: `Word` has the role | DataFeature` | its new name `Place` | `Pixel`
//! A feature is not a pixel because it is called so.

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
