//~ words: `C` has the size 3 as axis 1 of `image`, but 10 as axis 1 of `logits`
typed_dims::onnx_dims!("models/classifier.onnx", image: [_, C, _, _], logits: [_, C]);

fn main() {}
