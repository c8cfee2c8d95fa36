//! Reads the dims of ONNX models. Use the crate `typed-dims` with the feature `onnx`, which
//! re-exports this crate as `typed_dims::onnx`.
//!
//! An [`OnnxModel`] is read from a file. [`inputs`](OnnxModel::inputs) and
//! [`outputs`](OnnxModel::outputs) are its signature: for each tensor the element type, and for
//! each axis its size (a number, a name that ONNX calls *dim_param*, or unknown) and its denotation
//! (the meaning of the axis), if it has one. The macro `onnx_dims!` generates dims and structs from
//! the signature.
//!
//! [`check_denotations`](OnnxModel::check_denotations) implements the check that ONNX proposed as
//! *Dimension Denotation*. It propagates the meaning of axes from the inputs through the graph, and
//! compares it with the meaning that each operator expects. See [`denotation`].
//!
//! ```
//! use typed_dims_onnx::{OnnxModel, proto};
//!
//! // Usually a model comes from a file. This one transposes NCHW to NHCW and then pools.
//! let image = proto::float_tensor("image", &[("N", "DATA_BATCH"), ("3", "DATA_CHANNEL"), ("8", "DATA_FEATURE"), ("8", "DATA_FEATURE")]);
//! let transpose = proto::node("Transpose", &["image"], &["t"]).named("swap").ints("perm", &[0, 2, 1, 3]);
//! let pool = proto::node("AveragePool", &["t"], &["pooled"]).named("pool").ints("kernel_shape", &[2, 2]);
//! let graph = proto::GraphProto { node: vec![transpose, pool], input: vec![image], ..Default::default() };
//!
//! let model = OnnxModel::from_bytes(proto::model(graph).to_bytes())?;
//! assert_eq!(model.inputs()?[0].to_string(), "image: f32[N: DATA_BATCH, 3: DATA_CHANNEL, 8: DATA_FEATURE, 8: DATA_FEATURE]");
//! let report = model.check_denotations();
//! assert_eq!(
//!     report.mismatches[0].to_string(),
//!     "node `pool` (AveragePool), input `t`: axis 1 is DATA_FEATURE, but DATA_CHANNEL is expected; \
//!      axis 2 is DATA_CHANNEL, but DATA_FEATURE is expected",
//! );
//! # Ok::<_, typed_dims_onnx::OnnxError>(())
//! ```

#![deny(missing_docs)]

pub mod denotation;
mod error;
mod limits;
pub mod proto;
mod signature;

pub use denotation::{DenotationMismatch, DenotationReport};
pub use error::OnnxError;
pub use signature::{OnnxAxis, OnnxElem, OnnxSize, OnnxTensor};

use prost::Message;
use prost::bytes::Bytes;
use std::path::Path;

/// The greatest supported number of axes of an input or an output.
pub const MOST_AXES: usize = 26;

/// An ONNX model.
#[derive(Clone, Debug)]
pub struct OnnxModel {
    proto: proto::ModelProto,
}

impl OnnxModel {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or is not a model.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OnnxError> {
        let bytes = std::fs::read(path.as_ref()).map_err(|error| OnnxError::Unreadable {
            path: path.as_ref().to_owned(),
            error: error.to_string(),
        })?;
        Self::from_bytes(bytes)
    }

    /// Reads a model from the content of a file. The raw data of weights are not copied.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a model: truncated, not in the protobuf format, nested
    /// too deeply, with names that are not UTF-8, without a graph, or with too many parts.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, OnnxError> {
        let bytes = bytes.into();
        if limits::has_too_many_parts(&bytes) {
            let why = format!(
                "it has more than {} nodes, names, attributes, weights, types and axes",
                limits::MOST_PARTS
            );
            return Err(OnnxError::NotAModel { why });
        }
        let proto = proto::ModelProto::decode(bytes)
            .map_err(|error| OnnxError::NotAModel { why: error::brief(&error.to_string()) })?;
        Self::from_proto(proto)
    }

    /// Creates a model from a protobuf message.
    ///
    /// # Errors
    ///
    /// Returns an error if the message has no graph.
    pub fn from_proto(proto: proto::ModelProto) -> Result<Self, OnnxError> {
        match proto.graph {
            Some(_) => Ok(OnnxModel { proto }),
            None => Err(OnnxError::NotAModel { why: "it has no graph".to_owned() }),
        }
    }

    /// The protobuf message.
    pub fn proto(&self) -> &proto::ModelProto {
        &self.proto
    }

    /// The graph: nodes, weights, inputs and outputs.
    pub fn graph(&self) -> &proto::GraphProto {
        self.proto.graph.as_ref().expect("a model without a graph is not made")
    }

    /// The inputs, in the model's order. Weights that older models list among the inputs are left
    /// out.
    ///
    /// # Errors
    ///
    /// Returns an error if an input is not a tensor, has elements of an unsupported type, has more
    /// than [`MOST_AXES`] axes, or has sizes that no array can have.
    pub fn inputs(&self) -> Result<Vec<OnnxTensor>, OnnxError> {
        let graph = self.graph();
        let weights = graph.weights();
        let inputs = graph.input.iter().filter(|input| !weights.contains(input.name.as_str()));
        inputs.map(OnnxTensor::read).collect()
    }

    /// The outputs, in the model's order.
    ///
    /// # Errors
    ///
    /// Returns an error if an output is not a tensor, has elements of an unsupported type, has more
    /// than [`MOST_AXES`] axes, or has sizes that no array can have.
    pub fn outputs(&self) -> Result<Vec<OnnxTensor>, OnnxError> {
        self.graph().output.iter().map(OnnxTensor::read).collect()
    }

    /// Propagates the meaning of the inputs' axes through the graph, and compares it with the
    /// meaning that operators expect: see [`denotation`].
    pub fn check_denotations(&self) -> DenotationReport {
        denotation::check(&self.proto)
    }
}
