//! The messages of `onnx.proto`, with the fields that are relevant for dims. All others are skipped
//! when a file is read.
//!
//! Field numbers are those of the standard,
//! [onnx.proto](https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). The functions build small
//! models, for example in tests.

use prost::Message;
use prost::bytes::Bytes;
use std::collections::HashSet;

/// A model.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// The version of the format.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The program that wrote the file.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// The computation.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// The versions of the operators.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
}

/// A version of operators.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// The domain of the operators; empty for the standard ones.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// The version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A graph: nodes in the order of computation.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// The nodes.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// The name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Weights and constants.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// The inputs.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// The outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
    /// The types of intermediate values.
    #[prost(message, repeated, tag = "13")]
    pub value_info: Vec<ValueInfoProto>,
}

impl GraphProto {
    /// The names of the weights.
    pub(crate) fn weights(&self) -> HashSet<&str> {
        self.initializer.iter().map(|weight| weight.name.as_str()).collect()
    }
}

/// A node: an operator with its inputs and outputs.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// The names of the inputs; empty for an omitted input.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// The names of the outputs.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// The name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// The attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// The domain of the operator; empty for the standard ones.
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// An attribute of a node.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// An integer.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// A string.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub s: Option<Bytes>,
    /// A tensor.
    #[prost(message, optional, boxed, tag = "5")]
    pub t: Option<Box<TensorProto>>,
    /// A graph: the body of a branch or a loop.
    #[prost(message, optional, boxed, tag = "6")]
    pub g: Option<Box<GraphProto>>,
    /// Integers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// The kind of the attribute.
    #[prost(int32, tag = "20")]
    pub r#type: i32,
}

/// A constant.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// The sizes.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// The number of the element type.
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// The elements, if they are `i32`, `bool` or have at most 16 bits, and are not in `raw_data`.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// The elements, if they are `i64` and are not in `raw_data`.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// The name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// The elements as little-endian bytes.
    #[prost(bytes = "bytes", tag = "9")]
    pub raw_data: Bytes,
}

/// A name and its type.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// A type.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// The kind of the type, and its details.
    #[prost(oneof = "TypeValue", tags = "1, 4, 5, 8, 9")]
    pub value: Option<TypeValue>,
    /// The meaning of the value, such as `IMAGE`.
    #[prost(string, tag = "6")]
    pub denotation: String,
}

/// The type of a value.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum TypeValue {
    /// A tensor.
    #[prost(message, tag = "1")]
    Tensor(TensorType),
    /// A sequence. Its content is not read.
    #[prost(message, tag = "4")]
    Sequence(OtherType),
    /// A map.
    #[prost(message, tag = "5")]
    Map(OtherType),
    /// A sparse tensor.
    #[prost(message, tag = "8")]
    Sparse(OtherType),
    /// A value that may be missing.
    #[prost(message, tag = "9")]
    Optional(OtherType),
}

/// The type of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorType {
    /// The number of the element type.
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// The axes, if they are known.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// A type without further details.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct OtherType {}

/// The axes of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// The axes.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// An axis.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    /// The size.
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub value: Option<DimensionValue>,
    /// The meaning.
    #[prost(string, tag = "3")]
    pub denotation: String,
}

/// The dimension denotations of the ONNX standard.
const STANDARD: [&str; 7] = [
    "DATA_BATCH",
    "DATA_CHANNEL",
    "DATA_TIME",
    "DATA_FEATURE",
    "FILTER_IN_CHANNEL",
    "FILTER_OUT_CHANNEL",
    "FILTER_SPATIAL",
];

impl DimensionProto {
    /// The meaning of the axis, if the model gives one. A standard denotation is returned in upper
    /// case, as in the standard, because ONNX Runtime ignores the case of denotations.
    pub fn meaning(&self) -> Option<&str> {
        let written = self.denotation.as_str();
        let standard = STANDARD.into_iter().find(|standard| standard.eq_ignore_ascii_case(written));
        (!written.is_empty()).then(|| standard.unwrap_or(written))
    }
}

/// The size of an axis.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum DimensionValue {
    /// A number.
    #[prost(int64, tag = "1")]
    DimValue(i64),
    /// The name of a size that is known only at run time.
    #[prost(string, tag = "2")]
    DimParam(String),
}

/// A model with this graph, IR version 8 and version 17 of the standard operators.
pub fn model(graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: 8,
        producer_name: "typed-dims".to_owned(),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: 17 }],
    }
}

impl ModelProto {
    /// The model in the file format.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }
}

/// A tensor of `f32`. Each axis has a size and a denotation. The size is a number if it parses as
/// an integer, unknown if it is empty, and a name otherwise.
pub fn float_tensor(name: &str, axes: &[(&str, &str)]) -> ValueInfoProto {
    tensor(name, 1, axes)
}

/// A tensor whose element type has this number in ONNX; otherwise like [`float_tensor`].
pub fn tensor(name: &str, elem_type: i32, axes: &[(&str, &str)]) -> ValueInfoProto {
    let size = |size: &str| match size.parse() {
        _ if size.is_empty() => None,
        Ok(value) => Some(DimensionValue::DimValue(value)),
        Err(_) => Some(DimensionValue::DimParam(size.to_owned())),
    };
    let axis = |&(value, denotation): &(&str, &str)| DimensionProto {
        value: size(value),
        denotation: denotation.to_owned(),
    };
    let shape = Some(TensorShapeProto { dim: axes.iter().map(axis).collect() });
    let value = Some(TypeValue::Tensor(TensorType { elem_type, shape }));
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { value, denotation: String::new() }) }
}

/// A constant of integers, with one axis.
pub fn integers(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        dims: vec![values.len() as i64],
        data_type: 7,
        int64_data: values.to_vec(),
        name: name.to_owned(),
        ..Default::default()
    }
}

/// A node without attributes.
pub fn node(operator: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    NodeProto {
        op_type: operator.to_owned(),
        input: owned(inputs),
        output: owned(outputs),
        ..Default::default()
    }
}

impl NodeProto {
    /// Sets the name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Adds an integer attribute.
    #[must_use]
    pub fn int(self, name: &str, i: i64) -> Self {
        self.with(AttributeProto { name: name.to_owned(), i: Some(i), r#type: 2, ..Default::default() })
    }

    /// Adds an attribute with a list of integers.
    #[must_use]
    pub fn ints(self, name: &str, ints: &[i64]) -> Self {
        self.with(AttributeProto {
            name: name.to_owned(),
            ints: ints.to_vec(),
            r#type: 7,
            ..Default::default()
        })
    }

    /// Adds a text attribute.
    #[must_use]
    pub fn text(self, name: &str, text: &str) -> Self {
        let s = Some(Bytes::from(text.to_owned()));
        self.with(AttributeProto { name: name.to_owned(), s, r#type: 3, ..Default::default() })
    }

    /// Adds a tensor attribute.
    #[must_use]
    pub fn constant(self, name: &str, tensor: TensorProto) -> Self {
        self.with(AttributeProto {
            name: name.to_owned(),
            t: Some(Box::new(tensor)),
            r#type: 4,
            ..Default::default()
        })
    }

    /// Adds a graph attribute.
    #[must_use]
    pub fn graph(self, name: &str, graph: GraphProto) -> Self {
        self.with(AttributeProto {
            name: name.to_owned(),
            g: Some(Box::new(graph)),
            r#type: 5,
            ..Default::default()
        })
    }

    fn with(mut self, attribute: AttributeProto) -> Self {
        self.attribute.push(attribute);
        self
    }
}
