//~ words: `Batch` has the role | DataBatch`, but | DataFeature` is expected
//! Pooling expects `[DATA_BATCH, DATA_CHANNEL, DATA_FEATURE, DATA_FEATURE]`.

use typed_dims::prelude::*;

dims! {
    pub struct Batch: DataBatch;
    pub struct Channel: DataChannel;
    pub struct Height: DataFeature;
    pub struct Width: DataFeature;
}

fn pooled(x: &Tensor<f32, (Batch, Channel, Height, Width)>) {
    let _ = x.avg_pool((Batch, Height), 2, &Window::new());
}

fn main() {}
