//~ words: `Batch` has the denotation DATA_TIME | DATA_BATCH
typed_dims::onnx_dims!("models/roles.onnx", steps: [Batch, _], rows: [Batch, _]);

fn main() {}
