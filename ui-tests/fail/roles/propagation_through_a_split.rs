//~ words: `Channel` has the role | DataChannel` | which none of `(Row, Column)` has
//! One of the parts of a dim means what it did.

use typed_dims::prelude::*;

dims! {
    pub struct Channel: DataChannel;
    pub struct Row: DataFeature = 4;
    pub struct Column: DataFeature;
}

fn pictures(x: Tensor<f32, (Channel,)>) {
    let _ = x.unflatten(Channel, (Row, Column));
}

fn main() {}
