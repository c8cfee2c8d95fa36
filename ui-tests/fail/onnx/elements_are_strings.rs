//~ words: the tensor `text` has strings as elements
typed_dims::onnx_dims!("models/strings.onnx");

fn main() {}
