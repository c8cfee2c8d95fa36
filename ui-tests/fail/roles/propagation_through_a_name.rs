//~ words: `Channel` has the role | DataChannel` | its new name `Height` | DataFeature`
//! A renamed dim keeps its role.

use typed_dims::prelude::*;

dims! {
    pub struct Batch: DataBatch;
    pub struct Channel: DataChannel;
    pub struct Height: DataFeature;
}

fn disguised(x: Tensor<f32, (Batch, Channel)>) {
    let _ = x.rename(Channel, Height);
}

fn main() {}
