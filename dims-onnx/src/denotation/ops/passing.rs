//! Operators that pass on the meanings of the first input's axes.

use super::super::node::{Call, Results, axis};
use super::super::value::{Axis, Size, Value};

/// `TensorProto.DataType` of ONNX.
const INT32: i64 = 6;
const INT64: i64 = 7;

/// The input itself, with its elements.
pub fn as_it_is(call: &mut Call<'_>) -> Results {
    Ok(vec![call.input(0)])
}

/// The input in another type. Its elements stay known only for `i32` and `i64`: a conversion to
/// another type may change them, or the result of a later division.
pub fn cast(call: &mut Call<'_>) -> Results {
    let is_integer = matches!(call.int("to"), Some(INT32 | INT64));
    if is_integer { as_it_is(call) } else { same(call, 1) }
}

/// `count` results with the axes of the input.
pub fn same(call: &mut Call<'_>, count: usize) -> Results {
    Ok(vec![Value { integers: None, ..call.input(0) }; count])
}

/// `count` results with the axes of the input, but with unknown sizes.
pub fn resized(call: &mut Call<'_>, count: usize) -> Results {
    let Some(axes) = call.axes(0) else { return Ok(Vec::new()) };
    let value = Value::with_axes(axes.iter().map(|axis| axis.resized(Size::Unknown)).collect());
    Ok(vec![value; count])
}

/// The normalized values, and means and inverse deviations, whose axes from `axis` on have size 1.
pub fn layer_norm(call: &mut Call<'_>) -> Results {
    let Some(axes) = call.axes(0) else { return Ok(Vec::new()) };
    let first = axis(call.int("axis").unwrap_or(-1), axes.len())?;
    let reduced = |(at, axis): (usize, &Axis)| if at < first { axis.clone() } else { axis.reduced() };
    let moments = Value::with_axes(axes.iter().enumerate().map(reduced).collect());
    Ok(vec![Value { integers: None, ..call.input(0) }, moments.clone(), moments])
}

/// The integers, their scale and their zero point.
pub fn quantized(call: &mut Call<'_>) -> Results {
    let single = Value::with_axes(Vec::new());
    Ok(vec![Value { integers: None, ..call.input(0) }, single.clone(), single])
}

/// Selects positions along one axis; without an axis, from all elements in order.
pub fn compress(call: &mut Call<'_>) -> Results {
    match call.int("axis") {
        None => Ok(vec![Value::with_axes(vec![Axis::UNKNOWN])]),
        Some(number) => {
            let Some(axes) = call.axes(0) else { return Ok(Vec::new()) };
            let at = axis(number, axes.len())?;
            let mut axes = axes.to_vec();
            axes[at].size = Size::Unknown;
            Ok(vec![Value::with_axes(axes)])
        }
    }
}
