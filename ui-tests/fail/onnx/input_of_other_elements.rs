//~ words: mismatched types | i64 | f32
//! The model expects token ids, which are integers.

use typed_dims::prelude::*;

onnx_dims!("models/decoder.onnx", mask: [_, _, Other], hidden: [Rows, Columns]);

fn ids(inputs: &mut Inputs, ids: Tensor<f32, (BatchSize, Seq)>) {
    inputs.input_ids = ids;
}

fn main() {}
