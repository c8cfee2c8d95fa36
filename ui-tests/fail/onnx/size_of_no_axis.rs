//~ words: no axis with the denotation DATA_TIME is without a size
typed_dims::onnx_dims!("models/classifier.onnx", DataTime = 4);

fn main() {}
