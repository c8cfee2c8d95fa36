//~ words: `Step` has the role | DataTime` | which none of `(Height, Width)` has
//! Merged dims keep what they all mean.

use typed_dims::prelude::*;

dims! {
    pub struct Height: DataFeature;
    pub struct Width: DataFeature;
    pub struct Step: DataTime;
}

fn steps(x: Tensor<f32, (Height, Width)>) {
    let _ = x.flatten((Height, Width), Step);
}

fn main() {}
