//~ words: the model `models/classifer.onnx` cannot be read | Cargo.toml
typed_dims::onnx_dims!("models/classifer.onnx");

fn main() {}
