//~ words: the model `models/cut_off.onnx` cannot be read | this is not an ONNX model
typed_dims::onnx_dims!("models/cut_off.onnx");

fn main() {}
