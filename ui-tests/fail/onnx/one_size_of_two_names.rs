//~ words: has the size `N` in the model | `Picture`
typed_dims::onnx_dims!("models/classifier.onnx", image: [Picture, _, _, _], logits: [Row, _]);

fn main() {}
