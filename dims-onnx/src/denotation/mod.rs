//! Checks ONNX's Dimension Denotation.
//!
//! **Definition**: the model's file gives denotations of the axes of inputs, outputs and
//! intermediate values. **Propagation**: for operators that permute, destroy or create axes, the
//! checker computes the denotations of the results. **Verification**: if an operator expects its
//! inputs in a particular format and the axes have other denotations, this is reported.
//!
//! | operators | expected | results |
//! |---|---|---|
//! | pooling, `GridSample`, `InstanceNormalization`, `LRN`, `DepthToSpace`, `SpaceToDepth` | `[DATA_BATCH, DATA_CHANNEL, DATA_FEATURE, ..]` | the meaning of the input |
//! | `Conv`, `ConvTranspose`, `DeformConv` and the integer forms of `Conv` | `[DATA_BATCH, DATA_CHANNEL, DATA_FEATURE, ..]` for the data, and `[FILTER_OUT_CHANNEL, FILTER_IN_CHANNEL, FILTER_SPATIAL, ..]` for the filter (in and out are swapped for the transpose) | `[.., DATA_CHANNEL, ..]` |
//! | `BatchNormalization`, `GroupNormalization` | `[DATA_BATCH, DATA_CHANNEL, ..]` | the meaning of the input |
//! | `RNN`, `GRU`, `LSTM` | `[DATA_TIME, DATA_BATCH, DATA_FEATURE]`, or batch first, depending on `layout` | the result with all steps has the meaning of the input; the final states have it without `DATA_TIME` |
//! | `Scan` | `DATA_TIME` for the axes that it scans | for the axes along which it stacks, `DATA_TIME` if a scanned axis has it |
//! | elementwise, `Where`, `Concat` | operands agree axis by axis; except in `Concat`, an axis of size 1 agrees with any | the meaning that either operand gives |
//! | `MatMul`, `Gemm`, `Einsum` | batch axes and contracted axes agree; the summand of `Gemm` agrees with the product | the meaning of the remaining axes |
//! | `Transpose` | | `out[i] = in[perm[i]]` |
//! | `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze`, `Expand`, `Tile` | | the meaning of the remaining axes; merged axes have their common meaning; split and new axes have none |
//! | reductions, `ArgMax`, `TopK`, `Gather`, `Slice`, `Pad`, `Resize`, softmax, casts, activations, .. | | the meaning of the remaining axes |
//! | `If`, `Loop` | | the meaning of the inner graphs' outputs |
//!
//! Axes without a denotation are accepted everywhere. `DATA_FEATURE, ..` and `FILTER_SPATIAL, ..`
//! mean any number of axes with that denotation. `BatchNormalization` and `InstanceNormalization`
//! expect `[DATA_CHANNEL]` for their other inputs. Where axes of operands must agree,
//! `DATA_CHANNEL`, `FILTER_IN_CHANNEL` and `FILTER_OUT_CHANNEL` agree with each other: ONNX defines
//! the channels of a filter as identical in size to channels of the data. Results of an operator
//! that the checker does not know have no denotation, unless the model gives one; the report counts
//! such operators. If the model gives denotations for a value that was computed, the given and the
//! computed ones must agree. A reported axis passes no denotation on to the node's results, so that
//! later nodes do not report the same mistake again.

mod graph;
mod node;
mod ops;
mod regroup;
mod report;
mod value;

pub use report::{BrokenNode, DenotationMismatch, DenotationReport, DenotedOutput, WrongAxis};

use crate::proto::ModelProto;

/// The standard denotations.
pub const STANDARD_DENOTATIONS: [&str; 7] = [BATCH, CHANNEL, TIME, FEATURE, FILTER_IN, FILTER_OUT, SPATIAL];

const BATCH: &str = "DATA_BATCH";
const CHANNEL: &str = "DATA_CHANNEL";
const TIME: &str = "DATA_TIME";
const FEATURE: &str = "DATA_FEATURE";
const FILTER_IN: &str = "FILTER_IN_CHANNEL";
const FILTER_OUT: &str = "FILTER_OUT_CHANNEL";
const SPATIAL: &str = "FILTER_SPATIAL";

pub(crate) fn check(model: &ModelProto) -> DenotationReport {
    let mut walk = graph::Walk::new(model);
    if let Some(graph) = &model.graph {
        walk.whole(graph);
    }
    walk.report
}
