//~ words: `Step` has the role | DataTime` | which none of `(Height, Width)` has
//! Flattened dims keep their common role.

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
