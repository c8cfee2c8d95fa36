//~ words: node `pool` (AveragePool), input `t`: axis 1 is DATA_FEATURE, but DATA_CHANNEL is expected
//! ONNX's motivating example, as a model: NCHW is transposed to NHCW, and then pooled.

typed_dims::onnx_dims!("models/mistaken.onnx");

fn main() {}
