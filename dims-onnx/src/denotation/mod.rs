//! ONNX's Dimension Denotation: a checker.
//!
//! **Definition**: the axes of inputs, outputs and values on the way have denotations, in the model's file. **Propagation**: for each
//! operator that permutes, destroys or creates axes there is a function which says what the axes of its results mean. **Verification**: an operator
//! that expects its inputs in a particular format is given axes of other denotations, and that is reported.
//!
//! | operators | expected | results |
//! |---|---|---|
//! | pooling, `InstanceNormalization`, `LRN`, `DepthToSpace`, `SpaceToDepth` | `[DATA_BATCH, DATA_CHANNEL, DATA_FEATURE, ..]` | the same |
//! | `Conv`, `ConvTranspose` and their integer forms | the same, and `[FILTER_OUT_CHANNEL, FILTER_IN_CHANNEL, FILTER_SPATIAL, ..]` of the filter (in and out change places for the transpose) | `[.., DATA_CHANNEL, ..]` |
//! | `BatchNormalization`, `GroupNormalization` | `[DATA_BATCH, DATA_CHANNEL, ..]` | the same |
//! | `RNN`, `GRU`, `LSTM` | `[DATA_TIME, DATA_BATCH, DATA_FEATURE]`, or batches first as `layout` says | steps, and states |
//! | `Scan` | `DATA_TIME` where it scans | `DATA_TIME` where it stacks |
//! | elementwise, `Where`, `Concat` | operands agree, axis by axis; an axis of size 1 agrees with all | what either says |
//! | `MatMul`, `Gemm`, `Einsum` | axes that meet, or are summed over, agree | of what is left |
//! | `Transpose` | | `out[i] = in[perm[i]]` |
//! | `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze`, `Expand`, `Tile` | | of axes that stay; merged axes keep what all of them mean; split and new ones mean nothing |
//! | reductions, `ArgMax`, `TopK`, `Gather`, `Slice`, `Pad`, `Resize`, softmax, casts, activations, .. | | of axes that stay |
//! | `If`, `Loop` | | of what the graphs in them yield |
//!
//! Axes without a denotation are accepted everywhere. `DATA_CHANNEL`, `FILTER_IN_CHANNEL` and `FILTER_OUT_CHANNEL` agree where axes meet: the text calls them
//! identical in size. What comes out of an operator that is not in the table has no denotation, unless the model's `value_info` says
//! one, and the report counts such operators. Where the model denotes a value that is computed, the two must agree. An axis that was reported has no
//! denotation from there on, so that one mistake is one message.

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

/// Checks a model's graph.
pub(crate) fn check(model: &ModelProto) -> DenotationReport {
    let mut walk = graph::Walk::new(model);
    if let Some(graph) = &model.graph {
        walk.whole(graph);
    }
    walk.report
}
