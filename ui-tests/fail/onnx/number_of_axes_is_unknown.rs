//~ words: does not say how many axes `hidden` has
typed_dims::onnx_dims!("models/decoder.onnx", mask: [_, _, Other]);

fn main() {}
