//~ words: expected the name of a new dim, `use` and an existing dim
typed_dims::onnx_dims!("models/classifier.onnx", image: [N, 3, H, W]);

fn main() {}
