//~ words: `Channel` | DataChannel` | DataFeature` is expected
//! The mistake of ONNX's text: `NCHW` is transposed to `NHCW`, and its last two axes are pooled, which are not those of the picture.

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
