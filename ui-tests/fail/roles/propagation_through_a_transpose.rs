//~ words: `Channel` | DataChannel` | DataFeature` is expected
//! Axes in another order keep their roles.

use typed_dims::nn::pool::Pooling;
use typed_dims::prelude::*;
use typed_dims::operators::window::Window;

dims! {
    pub struct Batch: DataBatch;
    pub struct Channel: DataChannel;
    pub struct Height: DataFeature;
}

fn pooled(x: Tensor<f32, (Batch, Channel, Height)>) {
    let turned = x.order((Height, Channel, Batch)).into_tensor((Height, Channel, Batch));
    let _ = turned.max_pool((Height, Channel), 2, &Window::new());
}

fn main() {}
