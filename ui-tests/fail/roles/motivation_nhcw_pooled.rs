//~ words: `Channel` | DataChannel` | DataFeature` is expected
//! ONNX's example: `NCHW` is transposed to `NHCW`, and the wrong two axes are pooled.

use typed_dims::nn::pool::Pooling;
use typed_dims::prelude::*;
use typed_dims::operators::window::Window;

dims! {
    pub struct Batch: DataBatch;
    pub struct Channel: DataChannel;
    pub struct Height: DataFeature;
    pub struct Width: DataFeature;
}

fn pooled(x: Tensor<f32, (Batch, Channel, Height, Width)>) -> Tensor<f32, (Batch, Channel, Height, Width)> {
    x.avg_pool((Channel, Width), 2, &Window::new())
}

fn main() {}
