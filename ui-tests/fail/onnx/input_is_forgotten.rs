//~ words: missing field | `mask`
//! The model also needs the tensor that is left out here.

use typed_dims::prelude::*;

onnx_dims!("models/decoder.onnx", mask: [_, _, Other], hidden: [Rows, Columns]);

fn step(ids: Tensor<i64, (BatchSize, Seq)>) -> Inputs {
    Inputs { input_ids: ids, r#type: full((), half()) }
}

fn half<T>() -> T {
    unimplemented!()
}

fn main() {}
