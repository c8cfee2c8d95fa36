//~ words: the model `models/text.onnx` cannot be read | this is not an ONNX model
typed_dims::onnx_dims!("models/text.onnx");

fn main() {}
