//~ words: another entry of this call gives axes with the name `N` the size 4
typed_dims::onnx_dims!("models/classifier.onnx", DataBatch = 4, "N" = 5);

fn main() {}
