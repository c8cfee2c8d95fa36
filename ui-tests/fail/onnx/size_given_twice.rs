//~ words: axes with the name `N` have the size 4 by another entry of this call
typed_dims::onnx_dims!("models/classifier.onnx", DataBatch = 4, "N" = 5);

fn main() {}
