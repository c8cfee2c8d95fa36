//~ words: axes with the name `N` have the size 4 by an earlier line
typed_dims::onnx_dims!("models/classifier.onnx", DataBatch = 4, "N" = 5);

fn main() {}
