//~ words: the model has no axis with the denotation DATA_TIME whose size it leaves open
typed_dims::onnx_dims!("models/classifier.onnx", DataTime = 4);

fn main() {}
