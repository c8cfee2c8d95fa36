//~ words: has the same size `N` | `Picture`
typed_dims::onnx_dims!("models/classifier.onnx", image: [Picture, _, _, _], logits: [Row, _]);

fn main() {}
