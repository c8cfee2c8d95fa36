//! The inputs and outputs of a model.

use crate::MOST_AXES;
use crate::error::{OnnxError, shown};
use crate::proto::{DimensionProto, DimensionValue, TypeValue, ValueInfoProto};
use std::fmt;

/// An input or an output.
#[derive(Clone, Debug, PartialEq)]
pub struct OnnxTensor {
    /// The name in the model.
    pub name: String,
    /// The type of the elements.
    pub elem: OnnxElem,
    /// The axes, if the model gives their number.
    pub axes: Option<Vec<OnnxAxis>>,
}

/// One axis of an input or an output.
#[derive(Clone, Debug, PartialEq)]
pub struct OnnxAxis {
    /// The size.
    pub size: OnnxSize,
    /// The meaning, such as `DATA_CHANNEL`.
    pub denotation: Option<String>,
}

/// The size of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OnnxSize {
    /// A number.
    Fixed(usize),
    /// The name of a size that is known only at run time (ONNX calls it *dim_param*). Axes with the
    /// same name have the same size.
    Param(String),
    /// The model does not give the size.
    Unknown,
}

/// The type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnnxElem {
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `half::f16`
    F16,
    /// `half::bf16`
    BF16,
    /// `i8`
    I8,
    /// `i16`
    I16,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// `u8`
    U8,
    /// `u16`
    U16,
    /// `u32`
    U32,
    /// `u64`
    U64,
    /// `bool`
    Bool,
    /// `Complex<f32>`
    C32,
    /// `Complex<f64>`
    C64,
}

impl OnnxElem {
    /// The name of the Rust type.
    pub fn name(self) -> &'static str {
        match self {
            OnnxElem::F32 => "f32",
            OnnxElem::F64 => "f64",
            OnnxElem::F16 => "f16",
            OnnxElem::BF16 => "bf16",
            OnnxElem::I8 => "i8",
            OnnxElem::I16 => "i16",
            OnnxElem::I32 => "i32",
            OnnxElem::I64 => "i64",
            OnnxElem::U8 => "u8",
            OnnxElem::U16 => "u16",
            OnnxElem::U32 => "u32",
            OnnxElem::U64 => "u64",
            OnnxElem::Bool => "bool",
            OnnxElem::C32 => "Complex<f32>",
            OnnxElem::C64 => "Complex<f64>",
        }
    }

    /// The type with this number in `TensorProto.DataType`, or the reason why it is not supported.
    fn numbered(number: i32) -> Result<Self, String> {
        Ok(match number {
            1 => OnnxElem::F32,
            2 => OnnxElem::U8,
            3 => OnnxElem::I8,
            4 => OnnxElem::U16,
            5 => OnnxElem::I16,
            6 => OnnxElem::I32,
            7 => OnnxElem::I64,
            9 => OnnxElem::Bool,
            10 => OnnxElem::F16,
            11 => OnnxElem::F64,
            12 => OnnxElem::U32,
            13 => OnnxElem::U64,
            14 => OnnxElem::C32,
            15 => OnnxElem::C64,
            16 => OnnxElem::BF16,
            8 => return Err("has strings as elements, which are not supported".to_owned()),
            0 => return Err("has elements of an undefined type".to_owned()),
            _ => {
                return Err(format!("has elements of ONNX type {number}, which is not supported"));
            }
        })
    }
}

impl OnnxTensor {
    pub(crate) fn read(info: &ValueInfoProto) -> Result<Self, OnnxError> {
        let wrong = |why: String| OnnxError::Tensor { name: shown(&info.name), why };
        let value = info.r#type.as_ref().and_then(|ty| ty.value.as_ref());
        let tensor = match value {
            Some(TypeValue::Tensor(tensor)) => tensor,
            Some(TypeValue::Sequence(_)) => {
                return Err(wrong("has the type of a sequence, which is not supported".to_owned()));
            }
            Some(TypeValue::Map(_)) => {
                return Err(wrong("has the type of a map, which is not supported".to_owned()));
            }
            Some(TypeValue::Sparse(_)) => {
                return Err(wrong("is sparse, which is not supported".to_owned()));
            }
            Some(TypeValue::Optional(_)) => {
                return Err(wrong("has an optional type, which is not supported".to_owned()));
            }
            None => return Err(wrong("has no type in the model".to_owned())),
        };
        let elem = OnnxElem::numbered(tensor.elem_type).map_err(wrong)?;
        let Some(shape) = &tensor.shape else {
            return Ok(OnnxTensor { name: info.name.clone(), elem, axes: None });
        };
        if shape.dim.len() > MOST_AXES {
            return Err(wrong(format!(
                "has {} axes, but at most {MOST_AXES} are supported",
                shape.dim.len()
            )));
        }
        let mut axes = Vec::new();
        let mut elements = Some(1usize);
        for (at, dim) in shape.dim.iter().enumerate() {
            let axis = OnnxAxis::read(dim).map_err(|why| wrong(format!("has {why} along axis {at}")))?;
            if let OnnxSize::Fixed(size) = axis.size {
                // A size of 0 is left out of the product: even for empty arrays, ndarray limits the
                // product of the sizes that are not 0.
                elements = elements.and_then(|elements| elements.checked_mul(size.max(1)));
            }
            axes.push(axis);
        }
        if elements.is_none_or(|elements| elements > isize::MAX as usize / 16) {
            return Err(wrong("has more elements than memory can hold".to_owned()));
        }
        Ok(OnnxTensor { name: info.name.clone(), elem, axes: Some(axes) })
    }
}

impl OnnxAxis {
    fn read(dim: &DimensionProto) -> Result<Self, String> {
        let size = match &dim.value {
            // Some writers use -1 for an unknown size.
            Some(DimensionValue::DimValue(-1)) | None => OnnxSize::Unknown,
            Some(DimensionValue::DimParam(name)) if name.is_empty() => OnnxSize::Unknown,
            Some(DimensionValue::DimParam(name)) => OnnxSize::Param(name.clone()),
            Some(DimensionValue::DimValue(value)) => {
                OnnxSize::Fixed(usize::try_from(*value).map_err(|_| format!("the size {value}"))?)
            }
        };
        let denotation = dim.meaning().map(str::to_owned);
        Ok(OnnxAxis { size, denotation })
    }
}

impl fmt::Display for OnnxTensor {
    /// `image: f32[N: DATA_BATCH, 3: DATA_CHANNEL, ?]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", shown(&self.name), self.elem.name())?;
        let Some(axes) = &self.axes else { return f.write_str("[any number of axes]") };
        let axes: Vec<String> = axes.iter().map(ToString::to_string).collect();
        write!(f, "[{}]", axes.join(", "))
    }
}

impl fmt::Display for OnnxAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.size {
            OnnxSize::Fixed(size) => write!(f, "{size}")?,
            OnnxSize::Param(name) => f.write_str(&shown(name))?,
            OnnxSize::Unknown => f.write_str("?")?,
        }
        match &self.denotation {
            Some(denotation) => write!(f, ": {}", shown(denotation)),
            None => Ok(()),
        }
    }
}
