//~ words: not bound | `ImageAxis1`
//! The output of the model lacks the channels of the input.

use typed_dims::prelude::*;

onnx_dims!("models/classifier.onnx");

fn best(outputs: Outputs) {
    let _ = outputs.logits.argmax(ImageAxis1);
}

fn main() {}
