//~ words: not bound | `ImageAxis1`
//! The channels of the input are not there in what the model yields.

use typed_dims::prelude::*;

onnx_dims!("models/classifier.onnx");

fn best(outputs: Outputs) {
    let _ = outputs.logits.argmax(ImageAxis1);
}

fn main() {}
