//~ words: expected the path of a model in quotation marks
typed_dims::onnx_dims!(model.onnx);

fn main() {}
