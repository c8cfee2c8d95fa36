//~ words: `Height` | DataFeature` | DataChannel` is expected
//! Normalized over the batch, the channels and the width: only the height is left.

use typed_dims::nn::norm::Normalization;
use typed_dims::prelude::*;

dims! {
    pub struct Batch: DataBatch;
    pub struct Channel: DataChannel;
    pub struct Height: DataFeature;
    pub struct Width: DataFeature;
}

fn normal(x: Tensor<f32, (Batch, Channel, Height, Width)>) {
    let _ = x.batch_norm((Batch, Channel, Width), 1e-5);
}

fn main() {}
