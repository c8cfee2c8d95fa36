//~ words: the model has no input or output `picture` | image: f32[N: DATA_BATCH
typed_dims::onnx_dims!("models/classifier.onnx", picture: [N, C, H, W]);

fn main() {}
