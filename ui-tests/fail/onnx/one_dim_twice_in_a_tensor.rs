//~ words: axes 1 and 2 of `mask` are both `Seq` | mask: [_, Other, _]
typed_dims::onnx_dims!("models/decoder.onnx", hidden: [Rows, Columns]);

fn main() {}
