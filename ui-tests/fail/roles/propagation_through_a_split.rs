//~ words: `Channel` has the role | DataChannel` | which none of `(Row, Column)` has
//! One part of a split dim keeps its role.

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
