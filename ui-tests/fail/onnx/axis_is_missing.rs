//~ words: 3 axes are named, but the model has 4 | image: f32[N: DATA_BATCH
typed_dims::onnx_dims!("models/classifier.onnx", image: [N, H, W]);

fn main() {}
