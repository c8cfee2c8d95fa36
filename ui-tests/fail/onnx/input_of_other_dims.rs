//~ words: mismatched types | (N, ImageAxis1, H, W) | (N, H, W)
//! The image has no channels, but the model expects them.

use typed_dims::prelude::*;

onnx_dims!("models/classifier.onnx");

fn inputs(image: Tensor<f32, (N, H, W)>) -> Inputs {
    Inputs { image }
}

fn main() {}
