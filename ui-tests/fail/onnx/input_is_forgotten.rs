//~ words: missing field | `mask`
//! The model needs another tensor.

use typed_dims::prelude::*;

onnx_dims!("models/decoder.onnx", mask: [_, _, Other], hidden: [Rows, Columns]);

fn step(ids: Tensor<i64, (BatchSize, Seq)>) -> Inputs {
    Inputs { input_ids: ids, r#type: full((), half()) }
}

fn half<T>() -> T {
    unimplemented!()
}

fn main() {}
