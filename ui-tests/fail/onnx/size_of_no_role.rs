//~ words: `N` is not an ONNX role | `"N" = 4`
typed_dims::onnx_dims!("models/classifier.onnx", N = 4);

fn main() {}
