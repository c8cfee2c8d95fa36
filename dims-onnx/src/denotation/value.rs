//! The known properties of a value: its axes, and its elements if they are a short list of
//! integers.

use super::{CHANNEL, FILTER_IN, FILTER_OUT};
use crate::error::shown;
use crate::proto::{DimensionValue, TensorProto, TypeValue, ValueInfoProto};
use std::fmt;
use std::rc::Rc;

/// The elements of longer lists are not tracked. This bounds the memory that hostile graphs can
/// require.
pub const MOST_INTEGERS: usize = 256;

/// The axes of a value inside a graph are not tracked if it has more than this.
pub const MOST_AXES_INSIDE: usize = 64;

/// A size: a number, a name, or unknown.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    Fixed(i64),
    Param(Rc<str>),
    Unknown,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Fixed(size) => write!(f, "{size}"),
            Size::Param(name) => f.write_str(&shown(name)),
            Size::Unknown => f.write_str("?"),
        }
    }
}

impl Size {
    pub fn is_one(&self) -> bool {
        *self == Size::Fixed(1)
    }

    /// Whether both sizes are known and equal.
    pub fn same(&self, other: &Size) -> bool {
        *self != Size::Unknown && self == other
    }

    /// This size, or `other` if this one is unknown.
    pub fn or(&self, other: &Size) -> Size {
        if *self == Size::Unknown { other.clone() } else { self.clone() }
    }
}

/// The meaning of an axis, if it is known.
pub type Meaning = Option<Rc<str>>;

#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub size: Size,
    pub meaning: Meaning,
}

impl Axis {
    pub const UNKNOWN: Axis = Axis { size: Size::Unknown, meaning: None };

    pub fn sized(size: Size) -> Axis {
        Axis { size, meaning: None }
    }

    pub fn reduced(&self) -> Axis {
        Axis { size: Size::Fixed(1), meaning: self.meaning.clone() }
    }

    pub fn resized(&self, size: Size) -> Axis {
        Axis { size, meaning: self.meaning.clone() }
    }

    pub fn means(&self, meaning: &str) -> bool {
        self.meaning.as_deref() == Some(meaning)
    }

    /// The [`agreed`] meaning of two axes, and the first known size.
    pub fn joined(&self, other: &Axis) -> Axis {
        Axis { size: self.size.or(&other.size), meaning: agreed(&self.meaning, &other.meaning) }
    }
}

/// Whether the meanings of two axes agree: they are equal, both are channels, or one is unknown.
pub fn agree(a: &Meaning, b: &Meaning) -> bool {
    match (a.as_deref(), b.as_deref()) {
        (Some(a), Some(b)) => a == b || (is_channel(a) && is_channel(b)),
        _ => true,
    }
}

/// The common meaning of two axes; `None` if they do not agree or both are unknown.
pub fn agreed(a: &Meaning, b: &Meaning) -> Meaning {
    match (a.as_deref(), b.as_deref()) {
        (Some(first), Some(second)) if first == second => a.clone(),
        (Some(first), Some(second)) if is_channel(first) && is_channel(second) => {
            // If data meets a filter, the result is data.
            if second == CHANNEL { b.clone() } else { a.clone() }
        }
        (Some(_), Some(_)) => None,
        (None, _) => b.clone(),
        (_, None) => a.clone(),
    }
}

fn is_channel(meaning: &str) -> bool {
    [CHANNEL, FILTER_IN, FILTER_OUT].contains(&meaning)
}

/// The known properties of a value.
#[derive(Clone, Debug, Default)]
pub struct Value {
    /// The axes, if their number is known. They are shared, because many operators pass them on
    /// unchanged.
    pub axes: Option<Rc<[Axis]>>,
    /// The elements, if they are a single integer or a short list of integers.
    pub integers: Option<Rc<[Size]>>,
}

impl Value {
    pub fn unknown() -> Value {
        Value::default()
    }

    /// A value with these axes. If there are too many, nothing is known.
    pub fn with_axes(axes: Vec<Axis>) -> Value {
        Value { axes: (axes.len() <= MOST_AXES_INSIDE).then(|| axes.into()), integers: None }
    }

    pub fn list(integers: Vec<Size>) -> Value {
        let axes = Some([Axis::sized(Size::Fixed(integers.len() as i64))].into());
        Value { axes, integers: (integers.len() <= MOST_INTEGERS).then(|| integers.into()) }
    }

    pub fn single(integer: Size) -> Value {
        Value { axes: Some([].into()), integers: Some([integer].into()) }
    }

    /// The elements of a list, or a single integer as a list of one. Some may be unknown. `None` if
    /// the value may have several axes, or if the length of the list is unknown or too large.
    pub fn elements(&self) -> Option<Rc<[Size]>> {
        match (&self.integers, self.axes.as_deref()) {
            (Some(integers), _) => Some(integers.clone()),
            (None, Some([])) => Some([Size::Unknown].into()),
            (None, Some([Axis { size: Size::Fixed(count), .. }])) => {
                let count = usize::try_from(*count).ok().filter(|&count| count <= MOST_INTEGERS)?;
                Some(vec![Size::Unknown; count].into())
            }
            _ => None,
        }
    }

    /// The elements, if all of them are numbers.
    pub fn numbers(&self) -> Option<Vec<i64>> {
        let number = |size: &Size| if let Size::Fixed(number) = size { Some(*number) } else { None };
        self.integers.as_ref()?.iter().map(number).collect()
    }

    pub fn declared(info: &ValueInfoProto) -> Value {
        let Some(TypeValue::Tensor(tensor)) = info.r#type.as_ref().and_then(|ty| ty.value.as_ref()) else {
            return Value::unknown();
        };
        let Some(shape) = &tensor.shape else { return Value::unknown() };
        let axis = |dim: &crate::proto::DimensionProto| Axis {
            size: match &dim.value {
                Some(DimensionValue::DimValue(value)) if *value >= 0 => Size::Fixed(*value),
                Some(DimensionValue::DimParam(name)) if !name.is_empty() => Size::Param(name.as_str().into()),
                _ => Size::Unknown,
            },
            meaning: dim.meaning().map(Into::into),
        };
        Value::with_axes(shape.dim.iter().map(axis).collect())
    }

    pub fn constant(tensor: &TensorProto) -> Value {
        let size = |&size: &i64| if size < 0 { Size::Unknown } else { Size::Fixed(size) };
        let axes = tensor.dims.iter().map(|dim| Axis::sized(size(dim))).collect();
        Value { integers: integers(tensor), ..Value::with_axes(axes) }
    }
}

/// The elements of a constant, if it is a single `i32` or `i64` or a short list of them, and they
/// are stored in the model.
fn integers(tensor: &TensorProto) -> Option<Rc<[Size]>> {
    let count = match tensor.dims[..] {
        [] => 1,
        [count] => usize::try_from(count).ok().filter(|&count| count <= MOST_INTEGERS)?,
        _ => return None,
    };
    let raw = &tensor.raw_data;
    let numbers: Vec<i64> = match tensor.data_type {
        7 if raw.is_empty() => tensor.int64_data.clone(),
        7 => {
            raw.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().expect("8 bytes"))).collect()
        }
        6 if raw.is_empty() => tensor.int32_data.iter().map(|&number| i64::from(number)).collect(),
        6 => raw
            .chunks_exact(4)
            .map(|bytes| i64::from(i32::from_le_bytes(bytes.try_into().expect("4 bytes"))))
            .collect(),
        _ => return None,
    };
    (numbers.len() == count).then(|| numbers.into_iter().map(Size::Fixed).collect())
}
