//~ words: `Channel` | DataChannel` | DataFeature` is expected
//! An axis that the model denotes as channels is not a position in space.

use typed_dims::nn::pool::Pooling;
use typed_dims::prelude::*;
use typed_dims::operators::window::Window;

onnx_dims!("models/classifier.onnx", image: [_, Channel, _, _]);

fn halves(inputs: Inputs) {
    let _ = inputs.image.avg_pool((Channel, W), 2, &Window::new().stride(2));
}

fn main() {}
